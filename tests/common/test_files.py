"""Files are written whole or not at all, and disk errors end in one line."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import UserError, exit_on_user_error, explain_lack_of_memory
from common.files import append_line, remove_leftovers, write_atomically, write_folder
from tests.processes import files_limited_to, printed_by


def test_the_old_content_stays_until_the_new_is_on_the_disk(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "file"
    write_atomically(path, "old: ñ")
    order, real_fsync, real_replace = [], os.fsync, os.replace

    def fsync(descriptor):
        order.append(("fsync", path.read_text()))
        real_fsync(descriptor)

    def replace(source, target):
        order.append(("replace", Path(source).read_bytes()))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_atomically(path, b"new")
    assert order == [("fsync", "old: ñ"), ("replace", b"new")]
    assert path.read_bytes() == b"new" and list(path.parent.iterdir()) == [path]


def test_a_write_that_the_system_refuses_changes_nothing_and_is_told(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    told = rf"cannot write {path}: File too large; make room, then start the same"
    with files_limited_to(1000), pytest.raises(UserError, match=told):
        write_atomically(path, "new" * 1000)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_a_file_and_one_that_is_gone_are_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*file/below: (File exists|Not a directory)"):
        write_atomically(tmp_path / "file" / "below", "")
    with pytest.raises(UserError, match=r"cannot write .*gone/metrics: No such file or directory; is its disk still"):
        append_line(tmp_path / "gone" / "metrics", "line")
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("place", ["new/folder", "empty", "."])
def test_a_folder_appears_when_everything_in_it_is_on_the_disk(place, tmp_path, monkeypatch):
    (tmp_path / "work" / "empty").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "empty" if place == "." else tmp_path / "work")
    folder, flushed, real_fsync = Path(place), [], os.fsync
    there = folder.absolute()  # where one works in it, it is no longer this

    def fsync(descriptor):
        flushed.append((os.fstat(descriptor).st_ino, (there / "inner").exists()))
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with write_folder(folder) as new:
        (new / "inner").mkdir()
        (new / "inner" / "file").write_text("content")
        inodes = {path.stat().st_ino for path in (new, new / "inner", new / "inner" / "file")}
    assert {inode for inode, is_visible in flushed if not is_visible} == inodes
    assert (there / "inner" / "file").read_text() == "content"
    assert not list(tmp_path.rglob(".*"))


def fail_to_write(folder):
    with write_folder(folder) as new:
        (new / "file").write_text("half")
        raise RuntimeError


def test_nothing_remains_of_a_folder_that_failed(tmp_path):
    with pytest.raises(RuntimeError):
        fail_to_write(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write .*Not a directory"):
        fail_to_write(tmp_path / "file" / "folder")


@pytest.mark.parametrize("kind", ["full", "file", "link", "link to an empty folder"])
def test_a_folder_replaces_nothing(kind, tmp_path, tmp_path_factory):
    folder = tmp_path / "folder"
    match kind:
        case "full":
            (folder / "mine").mkdir(parents=True)
        case "file":
            folder.write_text("mine")
        case "link":
            folder.symlink_to("nowhere")
        case "link to an empty folder":
            folder.symlink_to(tmp_path_factory.mktemp("empty"))
    with pytest.raises(UserError, match="exists and is not an empty folder"):
        fail_to_write(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_a_killed_writer_left_goes_and_that_of_a_living_one_stays(tmp_path):
    [killed] = printed_by("import os; print(os.getpid())")
    stay = [f".b.json.{os.getppid()}.tmp", ".c.tmp", "d.tmp", ".e.².tmp", f".f.{10**20}.tmp"]
    go = [f".a.json.{process}.tmp" for process in (int(killed), os.getpid())]  # the second: numbers come again
    for name in stay + go:
        (tmp_path / name).touch()
    (tmp_path / f".folder.{int(killed)}.tmp" / "inner").mkdir(parents=True)
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(stay)
    remove_leftovers(tmp_path / "nothing")


def test_a_folder_that_a_killed_process_of_this_number_began_is_begun_again(tmp_path):
    """As in containers, where the first process always has the same."""
    for name in ("[new]", "n"):
        (tmp_path / f".{name}.{os.getpid()}.tmp" / "half").mkdir(parents=True)
    with write_folder(tmp_path / "[new]") as new:
        (new / "file").touch()
    assert [path.name for path in (tmp_path / "[new]").iterdir()] == ["file"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".n.{os.getpid()}.tmp", "[new]"]


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "No space left on device; make room, then start the same command again"),
        (errno.EROFS, "Read-only file system; make it writable, or choose another folder (train.py: run_dir=FOLDER)"),
        (errno.EMFILE, "Too many open files; allow more, as with ulimit -n 1024"),
        (errno.EIO, "Input/output error; is its disk still there?"),
    ],
)
def test_a_fault_of_the_disk_is_one_line_and_exit_code_2(code, advice, capsys):
    with pytest.raises(SystemExit) as end, exit_on_user_error():
        raise OSError(code, os.strerror(code), "runs/mine/data.json")
    assert end.value.code == 2
    assert capsys.readouterr().err == f"error: runs/mine/data.json: {advice}\n"


@pytest.mark.parametrize("fault", [MemoryError("Unable to allocate 8 TiB"), RuntimeError("RESOURCE_EXHAUSTED: 8 TiB")])
def test_a_lack_of_memory_is_one_line_with_the_advice_of_its_place(fault, capsys):
    outer, inner = explain_lack_of_memory("think twice"), explain_lack_of_memory("buy less")
    with pytest.raises(SystemExit) as end, exit_on_user_error(), outer, inner:
        raise fault
    assert end.value.code == 2
    assert capsys.readouterr().err == f"error: out of memory ({fault}): buy less\n"
    with pytest.raises(SystemExit), exit_on_user_error():
        raise fault
    assert capsys.readouterr().err == f"error: out of memory ({fault}): something smaller, or more memory, is needed\n"


def test_a_fault_of_the_program_is_none_of_the_users():
    for fault in (ValueError("x"), OSError(errno.EDOM, "x")):
        with pytest.raises(type(fault)), exit_on_user_error():
            raise fault


def test_a_reader_that_has_enough_ends_a_program_quietly():
    program = "from common.errors import exit_on_user_error\nwith exit_on_user_error():\n    print('line\\n' * 100_000)"
    piped = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert piped.stdout is not None and piped.stdout.readline() == b"line\n"
    piped.stdout.close()
    assert piped.stderr is not None and piped.stderr.read() == b""
    assert piped.wait() == 128 + 13
