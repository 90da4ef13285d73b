"""Counts of training words, held against a dictionary of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from data import sentences as storage
from data.corpus.summary import summarise_here
from data.corpus.word_counts import words_of
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
