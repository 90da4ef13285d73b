import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.pairs import Pairs, concatenate
from data.store.sentences import BLOCK, SentenceWriter, store_sentences

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=20)


@given(LINES, st.data())
def test_sentences_are_a_list_that_lies_elsewhere(lines, data):
    sentences = store_sentences(lines)
    assert list(sentences) == sentences == lines
    assert (len(sentences), sentences[:]) == (len(lines), lines)
    some = data.draw(st.slices(len(lines)))
    assert sentences[some] == lines[some]
    for index in range(-len(lines), len(lines)):
        assert sentences[index] == lines[index]
    for index in (len(lines), -len(lines) - 1):
        with pytest.raises(IndexError):
            sentences[index]


def test_more_sentences_than_a_block_holds():
    lines = ["" if i % 3 else f"línea {i}" for i in range(2 * BLOCK + 5)]
    writer = SentenceWriter()
    for start in range(0, len(lines), 7000):
        writer.append(lines[start : start + 7000])
    assert writer.finish() == store_sentences(iter(lines)) == lines
    assert store_sentences(lines)[BLOCK - 2 : BLOCK + 2] == lines[BLOCK - 2 : BLOCK + 2]
    assert (
        store_sentences(lines) != [*lines[:-1], "x"]
        and store_sentences(lines) != lines[:-1]
        and store_sentences(lines) != 3
    )


def test_a_line_feed_is_refused():
    with pytest.raises(ValueError, match="line feed"):
        store_sentences(["a", "b\nc"])


def test_pairs_are_kept_and_joined():
    listed = Pairs(["a", "b", "c"], ["x", "y", "z"])
    mapped = Pairs(store_sentences(listed.sources), store_sentences(listed.targets))
    for pairs in (listed, mapped):
        kept = pairs.select(np.array([True, False, True]))
        assert kept == pairs.take([0, 2]) == Pairs(["a", "c"], ["x", "z"])
        assert pairs.select(np.array([True] * 3)) is pairs
        assert len(pairs.select(np.array([False] * 3))) == 0
        assert concatenate([pairs, kept]) == Pairs([*"abcac"], [*"xyzxz"])
