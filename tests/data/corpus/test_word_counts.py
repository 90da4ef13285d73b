"""Counts of training words, held against a dictionary of them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from data import sentences as storage
from data.corpus.report import Sides
from data.corpus.summary import summarise_here
from data.corpus.word_counts import COUNTS_FILE, load_word_counts, save_word_counts, words_of
from data.pairs import Pairs, normalise

PAIRS = Pairs(["The cat saw the dog.", "The end!"], ["El gato vio al perro.", "¡El fin!"])


def test_words_have_neither_case_nor_punctuation():
    assert words_of("¿Qué TAL, el gato?") == ["qué", "tal", "el", "gato"]
    assert words_of("") == []


@given(st.lists(st.text(alphabet="aAbB ,é", max_size=12), max_size=20))
def test_counts_are_those_of_a_dictionary(texts):
    sentences = [normalise(text) for text in texts]
    expected = Counter(word for sentence in sentences for word in words_of(sentence))
    found = summarise_here(sentences)[1]
    words = [*expected, "never"]
    assert found.of(words).tolist() == [expected[word] for word in words]
    assert len(found.hashes) == len(expected)


def test_words_of_several_blocks_are_added():
    sentences = ["a b", "c"] * storage.BLOCK + ["b"]
    assert summarise_here(sentences)[1].of(["a", "b", "c", "d"]).tolist() == [
        storage.BLOCK,
        storage.BLOCK + 1,
        storage.BLOCK,
        0,
    ]


def test_no_words_at_all():
    assert summarise_here([])[1].of(["a"]).tolist() == [0]
    assert summarise_here(["a"])[1].of([]).tolist() == []


def test_both_sides_are_kept_and_no_text(tmp_path):
    save_word_counts(tmp_path, Sides(summarise_here(PAIRS.sources)[1], summarise_here(PAIRS.targets)[1]))
    source, target = (load_word_counts(tmp_path, side) for side in ("source", "target"))
    assert source is not None and source.of(["the", "cat", "el"]).tolist() == [3, 1, 0]
    assert target is not None and target.of(["el", "the"]).tolist() == [2, 0]
    assert b"gato" not in (tmp_path / COUNTS_FILE.format(side="target")).read_bytes()


def test_runs_without_counts_and_damaged_ones(tmp_path):
    path = tmp_path / COUNTS_FILE.format(side="target")
    assert load_word_counts(tmp_path, "target") is None
    np.savez(path, hashes=np.zeros(2, np.uint64), counts=np.zeros(3, np.int64))
    with pytest.raises(UserError, match=r"target_words\.npz is damaged: continue the run"):
        load_word_counts(tmp_path, "target")
    path.write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"target_words\.npz is damaged"):
        load_word_counts(tmp_path, "target")
