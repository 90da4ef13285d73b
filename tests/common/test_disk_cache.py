"""The cache returns what was computed, never a damaged file."""

import os

import pytest

from common import disk_cache
from common.disk_cache import load_or_compute


class Computation:
    """Returns the same bytes, and counts the calls."""

    def __init__(self, content: bytes = b"a\nb\0") -> None:
        self.content, self.times = content, 0

    def __call__(self) -> bytes:
        self.times += 1
        return self.content


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "puente" / "made"


@pytest.mark.parametrize("content", [b"", b"a\nb\0", "¡Sí!\r\n".encode()])
def test_a_result_is_computed_once_per_name(folder, content):
    compute = Computation(content)
    assert load_or_compute("one", compute) == load_or_compute("one", compute) == content
    assert compute.times == 1
    assert load_or_compute("two", compute) == content
    assert compute.times == 2 and sorted(os.listdir(folder)) == ["one", "two"]


@pytest.mark.parametrize(
    "harm", [lambda file: file[:-1], lambda file: file.replace(b"a\n", b"e\n"), lambda _: b"", lambda file: file[64:]]
)
def test_a_damaged_file_is_computed_again(folder, harm):
    compute = Computation()
    load_or_compute("one", compute)
    (folder / "one").write_bytes(harm((folder / "one").read_bytes()))
    assert load_or_compute("one", compute) == compute.content and compute.times == 2
    assert load_or_compute("one", compute) == compute.content and compute.times == 2


def test_the_least_recently_used_file_is_deleted(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "MAX_FILES", 2)
    for age, name in ((300, "oldest"), (200, "old")):
        load_or_compute(name, Computation())
        os.utime(folder / name, (os.stat(folder / name).st_mtime - age,) * 2)
    load_or_compute("oldest", Computation())  # used again
    load_or_compute("new", Computation())
    assert sorted(os.listdir(folder)) == ["new", "oldest"]


def test_without_a_writable_folder_nothing_is_cached(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compute = Computation()
    assert load_or_compute("one", compute) == load_or_compute("one", compute) == compute.content
    assert compute.times == 2


def test_a_failed_computation_caches_nothing(folder):
    def fail() -> bytes:
        raise ValueError("failed")

    for _ in range(2):
        with pytest.raises(ValueError, match="failed"):
            load_or_compute("one", fail)
    assert not folder.exists()
