"""Folders that are written whole or not at all."""

from pathlib import Path

import pytest

from common.errors import UserError
from exports.folder import write_whole


def test_a_folder_appears_when_all_is_written(tmp_path):
    for folder in (tmp_path / "new" / "one", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        with write_whole(folder) as new:
            (new / "inner").mkdir()
            (new / "inner" / "file").write_text("content")
            assert not (folder / "inner").exists()
        assert (folder / "inner" / "file").read_text() == "content"
        assert [path.name for path in folder.parent.iterdir() if path.name.startswith(".")] == []


def fail(folder):
    with write_whole(folder) as new:
        (new / "file").write_text("half")
        raise RuntimeError


def test_nothing_is_left_of_what_failed(tmp_path):
    with pytest.raises(RuntimeError):
        fail(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_the_empty_folder_one_works_in(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    with write_whole(Path(".")) as new:
        (new / "file").write_text("text")
    assert (tmp_path / "folder" / "file").read_text() == "text" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["full", "file", "link", "link to an empty folder"])
def test_nothing_is_replaced(kind, tmp_path, tmp_path_factory):
    folder = tmp_path / "folder"
    match kind:
        case "full":
            folder.mkdir()
            (folder / "mine").write_text("mine")
        case "file":
            folder.write_text("mine")
        case "link":
            folder.symlink_to("nowhere")
        case "link to an empty folder":
            folder.symlink_to(tmp_path_factory.mktemp("empty"))
    with pytest.raises(UserError, match="exists and is not an empty folder"):
        fail(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_place_that_takes_no_files(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*Not a directory"):
        fail(tmp_path / "file" / "folder")
