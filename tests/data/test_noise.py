"""Noise in sources: what it does to a sentence, by hand and as edits, and to the batches of a training."""

import collections
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.config import DataConfig
from data.noise import key_beside, noised, noised_pairs, with_case, with_punctuation, with_typo
from data.pairs import Pairs, normalise
from tests.data.batches.test_epochs import sentences
from tests.prepared import stream_of

CONFIG = DataConfig(row_length=96, batch_rows=4, window=50, noise=0.3)
TEXT = st.text(st.sampled_from("abcdeñÁß漢 .,!?'¿-\u0301😀"), max_size=40).map(normalise)
UNIFORM = st.floats(0, 1, exclude_max=True)


def test_typos_by_hand():
    typos = ["a whhite cat", "a wite cat", "a wihte cat", "a wjite cat"]
    assert [with_typo("a white cat", 0.0, 0.0, kind) for kind in (0.0, 0.25, 0.5, 0.75)] == typos
    assert with_typo("white house", 0.5, 0.99, 0.0) == "white housse"  # the second word; never its last letter
    assert with_typo("It is me.", 0.9, 0.9, 0.9) == "It is me."
    assert [key_beside(letter) for letter in "aPlúÑm漢"] == ["s", "O", "k", "i", "M", "n", "漢"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Hello.", ["Hello.", "Hello", "Hello.."]),
        ("¿Sí, Ana? It's me", ["¿Sí, Ana? It's me", "Sí Ana Its me", "¿Sí, Ana? It's me!!"]),
        ("...", ["...", "...", "...."]),
        ("", ["", "", ""]),
    ],
)
def test_punctuation_by_hand(sentence, expected):
    assert [with_punctuation(sentence, draw) for draw in (0.3, 0.6, 0.9)] == expected


def test_case_by_hand():
    draws, expected = (0.2, 0.25, 0.7, 0.8), ["Ana, Él", "ana, él", "ana, él", "ANA, ÉL"]
    assert [with_case("Ana, Él", draw) for draw in draws] == expected


def letters(sentence: str) -> str:
    """Without case, punctuation and spaces; typos stay."""
    return "".join(c for c in sentence.casefold() if unicodedata.category(c)[0] not in "PZ")


def edits(first: str, second: str) -> int:
    """The distance of optimal string alignment: insertions, deletions, substitutions, exchanges of neighbours."""
    d = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a != b))
            if i > 1 and j > 1 and (a, b) == (second[j - 2], first[i - 2]):
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return int(d[-1, -1])


@given(TEXT, st.lists(UNIFORM, min_size=5, max_size=5))
def test_a_sentence_has_one_typo_at_most_and_stays_a_normalised_sentence(sentence, draws):
    found = noised(sentence, np.array(draws))
    assert found == normalise(found) and bool(found) == bool(sentence)
    assert edits(letters(normalise(sentence.upper())), letters(normalise(found.upper()))) <= 1


def test_a_copy_depends_on_its_sentence_and_the_seed_alone(phrases, monkeypatch):
    copies, backwards = noised_pairs(phrases).sources, Pairs(phrases.sources[::-1], phrases.targets)
    assert noised_pairs(backwards).sources == copies[::-1]
    monkeypatch.setattr("data.noise.SEED", 2)
    assert noised_pairs(phrases).sources != copies
    assert sum(copy != source for copy, source in zip(copies, phrases.sources, strict=True)) > 230  # of 240


def pairs_of(stream, tokenizer):
    return [pair for step in range(stream.steps_in(0)) for pair in sentences(stream.batch(step), tokenizer)]


@pytest.mark.parametrize("alpha", [0.0, 0.2])
@pytest.mark.parametrize("direction", ["one", "both"])
def test_a_share_of_sources_is_noised_and_no_target(phrases, phrase_tokenizer, tagged_tokenizer, alpha, direction):
    tokenizer = tagged_tokenizer if direction == "both" else phrase_tokenizer
    config = replace(CONFIG, subword_sampling=alpha, direction=direction)
    found = pairs_of(stream_of(phrases, tokenizer, config, 3), tokenizer)
    clean = pairs_of(stream_of(phrases, tokenizer, replace(config, noise=0.0), 3), tokenizer)
    assert collections.Counter(target for _, target in found) == collections.Counter(target for _, target in clean)
    unchanged = collections.Counter(found) & collections.Counter(clean)
    share = 1 - unchanged.total() / len(clean)
    assert share == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / len(clean)) ** 0.5)  # four standard deviations


def test_every_visit_draws_its_noise_anew(phrases, phrase_tokenizer):
    stream = stream_of(phrases, phrase_tokenizer, replace(CONFIG, noise=1.0), 3)
    first = stream.steps_in(0)
    epochs = [range(first), range(first, first + stream.steps_in(1))]
    some, others = (
        {source for step in epoch for source, _ in sentences(stream.batch(step), phrase_tokenizer)} for epoch in epochs
    )
    assert len(some & others) < 20 < 200 < len(some)


def test_a_source_that_noise_would_make_too_long_stays_as_it_is(phrases, phrase_tokenizer):
    tight = max(len(ids) + 1 for ids in phrase_tokenizer.encode(phrases.sources))
    config = replace(CONFIG, row_length=tight, noise=1.0)
    stream = stream_of(phrases, phrase_tokenizer, config, 0)
    found = pairs_of(stream, phrase_tokenizer)
    as_they_are = {source for source, _ in found} & set(phrases.sources)
    assert len(found) == len(stream.encoded) and 0 < len(as_they_are) < 200
