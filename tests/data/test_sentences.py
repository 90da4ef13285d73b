import signal
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UserError
from data.pairs import Pairs, concatenate
from data.sentences import BLOCK, GrowingArray, SentenceWriter, move_to_disk, scratch_folder, store_sentences
from tests.processes import files_limited_to, run_code

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=20)


def test_an_array_is_its_blocks_and_cannot_be_written():
    growing = GrowingArray(np.int32)
    for block in ([1, 2], [], [3]):
        growing.append(np.array(block, dtype=np.int64))
    array = growing.view()
    assert array.tolist() == [1, 2, 3] and array.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 4
    assert move_to_disk(np.zeros(0)).shape == GrowingArray(np.int8).view().shape == (0,)
    every_other = np.arange(10)[::2]
    assert move_to_disk(every_other).tolist() == [0, 2, 4, 6, 8]


def test_nothing_has_a_name_even_after_a_kill(tmp_path):
    code = (
        "import os, signal, numpy as np; from data.sentences import *; array = move_to_disk(np.ones(9999));"
        "print(scratch_folder(), os.listdir(scratch_folder()), array.sum(), flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = run_code(code, TMPDIR=str(tmp_path))
    assert (done.stdout, done.returncode) == (f"{tmp_path} [] 9999.0\n", -signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported():
    growing, told = GrowingArray(np.int64), rf"cannot write {scratch_folder()}: .* again, or set TMPDIR=FOLDER"
    with files_limited_to(1000), pytest.raises(UserError, match=told):
        growing.append(np.zeros(100_000))


def test_where_no_folder_takes_a_file_that_is_told_with_a_way_out(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    with pytest.raises(UserError, match=r"No usable temporary directory found .* make room, or set TMPDIR=FOLDER"):
        GrowingArray(np.int8)


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
    assert writer.view() == store_sentences(iter(lines)) == lines
    assert store_sentences(lines)[BLOCK - 2 : BLOCK + 2] == lines[BLOCK - 2 : BLOCK + 2]
    for other in ([*lines[:-1], "x"], lines[:-1], 3):
        assert store_sentences(lines) != other


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
