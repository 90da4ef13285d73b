"""Writing files so that a reader, or a restart after a crash, sees the old content or the new, never a half."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from common.errors import UserError, in_words


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) beside ``path``, flush it to the disk, and rename it into place.

    Raises UserError where the disk is full, gone or not to be written to; ``path`` is then as it was.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with told_as_user_error(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def append_line(path: Path, line: str) -> None:
    """Add a line to a file and flush it to the disk; the same UserError.

    What a crash leaves of it may be half a line, for readers to drop.
    """
    with told_as_user_error(path), open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def cache_folder() -> Path:
    """This project's part of where programs keep what can be made again. RuntimeError if there is no home."""
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "puente"


@contextlib.contextmanager
def told_as_user_error(path: Path) -> Iterator[None]:
    """An OSError of writing ``path`` as a UserError that names it."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {in_words(error)}") from error


def remove_leftovers(folder: Path) -> None:
    """Delete what a killed ``write_atomically`` left in a folder; files of processes that still run stay."""
    for path in folder.glob(".*.tmp"):
        process = path.name.split(".")[-2]
        if process.isdigit() and not is_running(int(process)):
            path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    """Whether this machine has a process of that number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    return True
