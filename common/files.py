"""Files and folders that are written atomically: a reader, or a restart after a crash, never sees half of one."""

import contextlib
import errno
import glob
import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from typing import Any, AnyStr, BinaryIO

from common.errors import UserError, explain_os_error

LONGEST_LINE = 10_000_000  # bytes or letters; a sentence has hundreds, and takes 30 times its size in memory
TOO_LONG = f"more than {LONGEST_LINE:,} bytes in the line; break it into several"
SMALL = 2**26  # bytes


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) under another name, flush and rename it. A UserError leaves ``path`` alone."""
    with open_atomically(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Like ``write_atomically``, for content that is written piece by piece inside the ``with`` block."""
    path = Path(path)
    temporary = _temporary(path)
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def write_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write to. When the block ends, it is flushed to disk and becomes ``folder``.

    After an exception, nothing remains of it. UserError if ``folder`` exists and is not empty, or cannot be written.
    """
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder: name another, or move it away")
    place = Path(os.path.abspath(folder))  # so that . has a name
    temporary = _temporary(place)
    with explain_write_errors(folder):
        remove_leftovers(place.parent, place.name)
        temporary.mkdir(parents=True)
        try:
            yield temporary
            flush_folder(temporary)
            os.replace(temporary, place)
            flush(place.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def flush_folder(folder: Path) -> None:
    """Flush a folder and everything in it to disk."""
    for path in (*folder.rglob("*"), folder):
        flush(path)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append_line(path: Path, line: str) -> None:
    """Append a line and flush it to disk, or raise UserError. A crash may leave half a line, which readers drop."""
    with explain_write_errors(path), open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def with_check(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts for a JSON file with a digest of them, so that ``read_json_object`` can detect a changed bit."""
    return facts | {"check": sha256(json.dumps(facts, sort_keys=True))}


def bounded_lines(readline: Callable[[int], AnyStr], end: AnyStr) -> Iterator[AnyStr]:
    """The lines of a file; a line over ``LONGEST_LINE`` is cut, but remains over it."""
    while line := readline(LONGEST_LINE + 8):  # over it even without a byte order mark
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(end):
            line = readline(LONGEST_LINE + 8)


def open_regular(path: Path) -> BufferedReader:
    """Open a file for reading; OSError for a pipe or a device, which may never end."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def read_small(path: Path) -> bytes:
    """The content of a file; OSError if it is not a regular file, or far larger than any JSON or vocabulary file."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > SMALL:
            raise OSError(errno.EFBIG, f"above {SMALL:,} bytes", str(path))
        return file.read()


def read_json(path: Path) -> Any:
    """The content of a JSON file. OSError if it cannot be read; ValueError if it is not JSON or nested too deeply."""
    try:
        return json.loads(read_small(path).decode())
    except RecursionError as error:
        raise ValueError(f"{path} is nested too deeply") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object and remove its check; empty if the check fails, or the file is missing or not an object."""
    try:
        content = read_json(path)
        if not isinstance(content, dict):
            return {}
        check = content.pop("check", None)
        return content if check in (None, with_check(content)["check"]) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object for people to read; not atomically."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256(content: str | bytes) -> str:
    """SHA-256 of bytes, or of a string's UTF-8, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's content, as sha256sum prints it."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(paths: Iterable[Path]) -> list[str]:
    """The SHA-256 of each file; reads several files at a time."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(sha256_of_file, paths))


def leads_elsewhere(path: Path) -> bool:
    """Whether a path is a link, a pipe or a device: its content is elsewhere, or endless."""
    return path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir()))


def files_below(folder: Path) -> dict[str, Path]:
    """Everything in a folder and its subfolders except folders, by relative name."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return {str(path.relative_to(folder)): path for path in found}


def hash_folder(folder: Path) -> dict[str, str]:
    """The SHA-256 of everything in a folder and its subfolders except folders, by relative name."""
    files = files_below(folder)
    return dict(zip(files, hash_files(files.values()), strict=True))


def holds(folder: Path, listed: dict[str, str]) -> bool:
    """Whether a folder has the listed files with these SHA-256s, and nothing that leads elsewhere."""
    try:
        found = files_below(folder)
        if not listed.keys() <= found.keys() or any(map(leads_elsewhere, found.values())):
            return False
        return hash_files(found[name] for name in listed) == list(listed.values())
    except OSError:
        return False


def cache_folder() -> Path:
    """This project's folder in the user's cache. RuntimeError if there is no home folder."""
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "puente"


@contextlib.contextmanager
def explain_write_errors(path: Path, otherwise: str = "") -> Iterator[None]:
    """Turn an OSError in the block into a UserError that names ``path`` and says what to do, then ``otherwise``."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {explain_os_error(error)}{otherwise}") from error


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Delete temporary files and folders left by killed processes, only those for ``name`` if it is given.

    Those of other running processes stay. One with this process's number is from an earlier process that had it.
    """
    for path in folder.glob(f".{glob.escape(name) or '*'}.*.tmp"):
        process = path.name.split(".")[-2]
        if process.isdecimal() and not _is_another(int(process)):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    """The temporary name that this process uses while writing ``path``."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def _is_another(process: int) -> bool:
    """Whether a process with this number is running, other than this one."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # it belongs to another user, or is not a valid number
    return process != os.getpid()
