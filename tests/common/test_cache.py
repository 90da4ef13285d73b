"""Kept arrays: as they were computed, computed once, and never believed when they are not whole."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from common import cache
from common.cache import keep
from common.files import cache_folder

ARRAYS = {
    "text": np.frombuffer(b"abc\n", np.uint8),
    "start": np.array([0, 4]),
    "none": np.zeros((0, 2), np.int32),
    "weights": np.array([0.5, 2.0]),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the entries, of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return cache_folder() / "corpora"


@pytest.fixture
def times():
    """How often ``compute`` was called."""
    return []


@pytest.fixture
def kept_arrays(times):
    """``kept_arrays(name)`` returns the arrays through the cache."""

    def compute():
        times.append(1)
        return ARRAYS

    return lambda name="one": keep(name, compute)


def assert_same(found):
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)


def test_arrays_are_computed_once_and_mapped(kept_arrays, times):
    for _ in range(3):
        found = kept_arrays()
        assert_same(found)
        assert not found["text"].flags.writeable
    assert len(times) == 1
    kept_arrays("two")
    assert len(times) == 2


def test_damage_of_any_file_is_seen_and_mended(kept_arrays, times, folder):
    kept_arrays()
    paths = sorted((folder / "one").iterdir())
    assert len(paths) == len(ARRAYS) + 1
    for path in paths:
        content = path.read_bytes()
        flipped = content[:-1] + bytes([content[-1] ^ 1])
        for damaged in (content[: len(content) // 2], flipped, b"", None):
            path.write_bytes(damaged) if damaged is not None else path.unlink()
            before = len(times)
            assert_same(kept_arrays())
            assert len(times) == before + 1
            assert_same(kept_arrays())
            assert len(times) == before + 1


@pytest.mark.parametrize("call", ["numpy.save", "os.fsync", "common.cache.write_atomically", "os.replace"])
def test_an_entry_that_was_interrupted_is_not_used_and_its_remains_go(kept_arrays, times, folder, monkeypatch, call):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(call, interrupt)
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)  # as a kill leaves it
        with pytest.raises(KeyboardInterrupt):
            kept_arrays()
    assert [path.name for path in folder.glob("*/")] == [".one"]
    assert_same(kept_arrays())
    assert len(times) == 2
    assert [path.name for path in folder.glob("*/")] == ["one"]


def test_the_least_recently_used_go(kept_arrays, times, folder, monkeypatch):
    kept_arrays("one")
    size = sum(path.stat().st_size for path in (folder / "one").iterdir())
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * size)
    kept_arrays("two")
    for name, moment in (("one", 2), ("two", 1)):
        os.utime(folder / name / cache.LIST, (moment, moment))
    kept_arrays("three")
    assert {path.name for path in folder.glob("*/")} == {"one", "three"}
    assert not (folder / "two.lock").exists()
    monkeypatch.setattr(cache, "MAX_BYTES", 1)
    assert_same(kept_arrays("four"))  # the newest stays, however large
    assert {path.name for path in folder.glob("*/")} == {"four"}
    assert len(times) == 4


def test_what_is_mapped_outlives_its_entry(kept_arrays, folder):
    found = kept_arrays()
    shutil.rmtree(folder / "one")
    assert_same(found)


def test_of_those_who_want_the_same_one_computes(folder):
    times, begun = [], threading.Event()

    def compute():
        times.append(1)
        begun.set()
        threading.Event().wait(0.3)
        return ARRAYS

    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: keep("one", compute), range(4)):
            assert_same(found)
    assert len(times) == 1


def test_where_nothing_can_be_kept_it_is_computed_every_time(kept_arrays, times, folder, monkeypatch):
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage("/")._replace(free=10)
        patch.setattr(shutil, "disk_usage", lambda path: usage)
        assert_same(kept_arrays())
        assert_same(kept_arrays())
    assert len(times) == 2 and not list(folder.glob("*/"))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert_same(kept_arrays())
    assert len(times) == 3
