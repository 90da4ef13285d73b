"""Entries of the cache: as they were computed, computed once, and never used when they are not whole."""

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from common import cache
from common.cache import Entry, keep, peek
from common.files import cache_folder

FACTS = {"words": ["¡Sí!\r\n", ""], "count": 1.5}
ENTRY = Entry(
    {
        "text": np.frombuffer(b"abc\n", np.uint8),
        "start": np.array([0, 4]),
        "none": np.zeros((0, 2), np.int32),
        "weights": np.array([0.5, 2.0]),
    },
    FACTS,
)


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
def kept(times):
    """``kept(name)`` returns the entry through the cache."""

    def compute():
        times.append(1)
        return ENTRY

    return lambda name="one": keep(name, compute)


def names(folder):
    return {path.name for path in folder.glob("*/")}


def assert_same(found):
    assert found.arrays.keys() == ENTRY.arrays.keys() and found.facts == FACTS
    for name, array in ENTRY.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)


def test_an_entry_is_computed_once_and_mapped(kept, times):
    assert peek("one") == {}
    for _ in range(3):
        found = kept()
        assert_same(found)
        assert not found.arrays["text"].flags.writeable
    assert len(times) == 1 and peek("one") == FACTS
    kept("two")
    assert len(times) == 2


def test_damage_of_any_file_is_seen_and_mended(kept, times, folder):
    kept()
    paths = sorted((folder / "one").iterdir())
    assert len(paths) == len(ENTRY.arrays) + 2
    for path in paths:
        content = path.read_bytes()
        flipped = content[:-1] + bytes([content[-1] ^ 1])
        for damaged in (content[: len(content) // 2], flipped, b"", None):
            path.write_bytes(damaged) if damaged is not None else path.unlink()
            before = len(times)
            assert_same(kept())
            assert len(times) == before + 1
            assert_same(kept())
            assert len(times) == before + 1


@pytest.mark.parametrize("call", ["numpy.save", "os.fsync", "pathlib.Path.write_text", "os.replace"])
def test_an_entry_that_was_interrupted_is_not_used_and_its_remains_go(kept, times, folder, monkeypatch, call):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(call, interrupt)
        patch.setattr(shutil, "rmtree", lambda *arguments, **options: None)  # as a kill leaves it
        with pytest.raises(KeyboardInterrupt):
            kept()
    (remains,) = names(folder)
    assert remains == f".one.{os.getpid()}.tmp"
    (folder / remains).rename(folder / ".one.99999999.tmp")  # of a process that is gone
    assert_same(kept())
    assert len(times) == 2 and names(folder) == {"one"}


def test_the_least_recently_used_go(kept, times, folder, monkeypatch):
    kept("one")
    size = sum(path.stat().st_size for path in (folder / "one").iterdir())
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * size)
    kept("two")
    for name, moment in (("one", 2), ("two", 1)):
        os.utime(folder / name / cache.LIST, (moment, moment))
    kept("three")
    assert names(folder) == {"one", "three"} and not (folder / "two.lock").exists()
    (folder / ".others" / "inner").mkdir(parents=True)
    monkeypatch.setattr(cache, "MAX_BYTES", 1)
    assert_same(kept("four"))  # the newest stays, however large
    assert names(folder) == {"four", ".others"} and len(times) == 4


def test_of_those_who_want_the_same_one_computes():
    times = []

    def compute():
        times.append(1)
        threading.Event().wait(0.3)
        return ENTRY

    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: keep("one", compute), range(4)):
            assert_same(found)
    assert len(times) == 1


def test_where_nothing_can_be_written_it_is_computed_every_time(kept, times, folder, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage("/")._replace(free=10)
        patch.setattr(shutil, "disk_usage", lambda path: usage)
        assert_same(kept())
        assert_same(kept())
    assert len(times) == 2 and not names(folder)
    (tmp_path / "file").touch()
    for number, place in enumerate(("/proc/nowhere", str(tmp_path / "file")), start=3):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert_same(kept())
        assert len(times) == number and peek("one") == {}
