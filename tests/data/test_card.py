"""A data card's numbers and cells, each derived by hand."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from common.special_tokens import EOS
from data.card import (
    Card,
    build_card,
    count_pieces,
    count_text,
    find_unseen_words,
    length_ratios,
    packing_table,
    sample_pairs,
    sources_table,
    summarise_lengths,
)
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs, as_tsv
from data.prepare import prepare
from data.tokens.table import token_table


@pytest.fixture(scope="module")
def card(phrases, tmp_path_factory) -> Card:
    """A card of a corpus that stands twice in the training pairs; building it writes nothing."""
    root = tmp_path_factory.mktemp("corpus")
    (root / "train.tsv").write_text(as_tsv(phrases), encoding="utf-8")
    config = DataConfig(
        root=str(root), train=["train.tsv", "train.tsv"], weights=[0.5, 3.0], valid="", test="train.tsv",
        allow_overlap=["train/test", "valid/test"],
    )  # fmt: skip
    vocabulary = TokenizerConfig(vocab_size=330)
    card = build_card(config, vocabulary, prepare(config, vocabulary, 1))
    assert [path.name for path in root.iterdir()] == ["train.tsv"]
    return card


def test_percentiles_are_lengths_that_occur():
    assert summarise_lengths(np.array([1, 2, 3, 10])) == (4.0, 2, 10, 10)
    assert summarise_lengths(np.arange(1, 101)) == (50.5, 50, 95, 100)


def test_words_have_apostrophes_and_hyphens_inside_and_no_case():
    text = count_text(["Don't stop, don't!", "¿Qué? 3 well-known 'quotes' —", ""], token_table([[7, 8], [9], []]))
    assert text.words.tolist() == [3, 4, 0]
    assert text.characters.tolist() == [18, 29, 0]
    assert text.word_counts == {"don't": 2, "stop": 1, "qué": 1, "3": 1, "well-known": 1, "quotes": 1}
    assert text.tokens_per_word() == 3 / 7  # the three EOS spell nothing


def test_ratios_are_of_target_to_source():
    assert length_ratios(np.array([2, 4, 10]), np.array([1, 4, 20])).tolist() == pytest.approx([0.55, 1.0, 1.9])
    assert np.isfinite(length_ratios(np.array([0, 0]), np.array([3, 0]))).all()


def test_pieces_are_counted_in_the_sentences_that_are_trained_on():
    table = token_table([[300, 301], [302, 302], [303]]).take(np.array([0, 2]))
    counts = count_pieces(table, vocab_size=310)
    assert (counts[300:304].tolist(), counts[EOS]) == ([1, 1, 0, 1], 2)


def test_bytes_are_256_pieces(phrase_tokenizer):
    is_byte = phrase_tokenizer.is_byte
    assert is_byte.sum() == 256 and not is_byte[: EOS + 1].any()
    [ids] = phrase_tokenizer.encode(["Tom \N{SNOWMAN}"])  # three bytes of UTF-8 that no piece has
    assert is_byte[ids].sum() == 3


def test_coverage_counts_running_words():
    unseen = find_unseen_words(Counter({"a": 9, "b": 1}), Counter({"a": 5, "zoo": 1, "y": 1, "x": 3}))
    assert unseen == (5 / 10, ["x", "y", "zoo"])
    assert find_unseen_words(Counter(), Counter()) == (0, [])


def test_an_epoch_has_weight_times_pairs_of_each_source(card):
    first, second = (account.pairs for account in card.prepared.corpus.files.train)
    share = first / (first + 6 * second)  # the weights are 0.5 and 3
    assert [row[6] for row in sources_table(card).rows] == [f"{share:.1%}", f"{1 - share:.1%}", "", ""]


def test_what_is_left_out_of_a_held_out_set_is_shown(card):
    corpus = card.prepared.corpus
    files = replace(corpus.files, test=replace(corpus.files.test, malformed=1, empty=2))
    changed = replace(card, prepared=replace(card.prepared, corpus=replace(corpus, files=files)))
    assert [row[3] for row in sources_table(changed).rows[2:]] == ["none", "1 malformed, 2 empty"]


def test_samples_go_from_short_to_long_and_are_never_more_than_there_are():
    pairs = Pairs(["ddd", "a", "eeee", "bb"], ["ddd", "a", "eeee", "bb"])
    assert sample_pairs(pairs, 2) == [("bb", "bb"), ("eeee", "eeee")]  # halves: a bb | ddd eeee, the middle of each
    assert [source for source, _ in sample_pairs(pairs, 9)] == ["a", "bb", "ddd", "eeee"]


def test_packing_is_that_of_the_first_epoch(card):
    stream = card.prepared.stream
    cells = {row[0]: row[1] for row in packing_table(card).rows}
    packed = stream.windows.packed(0, 0)
    pairs, rows = stream.windows.visits(0), packed.placement.rows
    assert pairs == len(packed.placement.row) > len(stream.encoded)  # one window, and weights above 1
    assert cells["epoch"] == f"{pairs:,} pairs in {rows:,} rows ({pairs / rows:.2f} per row)"
    shares = [side.length.sum() / width for side, width in zip(packed[:2], stream.row_lengths, strict=True)]
    for name, places in (("fill", rows), ("fill, one pair per row", pairs)):
        assert cells[name] == f"{shares[0] / places:.1%} source, {shares[1] / places:.1%} target"
