"""What is kept is what was made, and nothing else is ever taken for it."""

import os

import pytest

from common import disk_cache as kept
from common.disk_cache import load_or_compute


class Maker:
    """Makes the same bytes, and counts how often."""

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
def test_it_is_made_once_under_a_name(folder, content):
    make = Maker(content)
    assert load_or_compute("one", make) == load_or_compute("one", make) == content
    assert make.times == 1
    assert load_or_compute("two", make) == content
    assert make.times == 2 and sorted(os.listdir(folder)) == ["one", "two"]


@pytest.mark.parametrize(
    "harm", [lambda file: file[:-1], lambda file: file.replace(b"a\n", b"e\n"), lambda _: b"", lambda file: file[64:]]
)
def test_what_was_changed_is_made_again(folder, harm):
    make = Maker()
    load_or_compute("one", make)
    (folder / "one").write_bytes(harm((folder / "one").read_bytes()))
    assert load_or_compute("one", make) == make.content and make.times == 2
    assert load_or_compute("one", make) == make.content and make.times == 2


def test_what_was_not_used_for_longest_makes_room(folder, monkeypatch):
    monkeypatch.setattr(kept, "MAX_FILES", 2)
    for age, name in ((300, "oldest"), (200, "old")):
        load_or_compute(name, Maker())
        os.utime(folder / name, (os.stat(folder / name).st_mtime - age,) * 2)
    load_or_compute("oldest", Maker())  # used again
    load_or_compute("new", Maker())
    assert sorted(os.listdir(folder)) == ["new", "oldest"]


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    make = Maker()
    assert load_or_compute("one", make) == load_or_compute("one", make) == make.content
    assert make.times == 2


def test_what_cannot_be_made_keeps_nothing(folder):
    def fail() -> bytes:
        raise ValueError("not made")

    for _ in range(2):
        with pytest.raises(ValueError, match="not made"):
            load_or_compute("one", fail)
    assert not folder.exists()
