"""Hashes of training sentences and counts of their words, held against a dictionary."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data import sentences as storage
from data.corpus.splits import hash_sentences
from data.corpus.word_counts import summarise, words_of
from data.pairs import normalise


def test_words_have_neither_case_nor_punctuation():
    assert words_of("¿Qué TAL, el gato?") == ["qué", "tal", "el", "gato"]
    assert words_of("") == []


@given(st.lists(st.text(alphabet="aAbB ,é", max_size=12), max_size=20))
def test_counts_are_those_of_a_dictionary(texts):
    sentences = [normalise(text) for text in texts]
    expected = Counter(word for sentence in sentences for word in words_of(sentence))
    hashes, found = summarise(sentences)
    words = [*expected, "never"]
    assert found.of(words).tolist() == [expected[word] for word in words]
    assert len(found.hashes) == len(expected) and found.of([]).tolist() == []
    np.testing.assert_array_equal(hashes, hash_sentences(sentences))


def test_words_of_several_blocks_are_added():
    found = summarise(["a b", "c"] * storage.BLOCK + ["b"])[1].of(["a", "b", "c", "d"])
    assert found.tolist() == [storage.BLOCK, storage.BLOCK + 1, storage.BLOCK, 0]
