"""What takes seconds to make at every start, kept in the user's cache folder as it was made once."""

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path

from common.errors import UserError
from common.files import cache_folder, write_atomically

MOST_FILES = 64  # the least recently used make room


def made_once(name: str, make: Callable[[], bytes]) -> bytes:
    """What ``make`` makes, read back if this or another process has made it before.

    ``name`` tells all that it depends on. What is not as it was written is made again; where nothing can be written,
    nothing is kept.
    """
    try:
        path = cache_folder() / "made" / name
    except RuntimeError:  # there is no home
        return make()
    content = read_back(path)
    if content is None:
        content = make()
        with contextlib.suppress(UserError, OSError):
            write_atomically(path, hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
            make_room(path.parent)
    return content


def read_back(path: Path) -> bytes | None:
    """What is below the SHA-256 of it; None if there is nothing, or something else."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    with contextlib.suppress(OSError):  # it may lie in a folder that is only read
        path.touch()
    return content if hashlib.sha256(content).hexdigest().encode() == digest else None


def make_room(folder: Path) -> None:
    """Remove the files that were used longest ago, but for so many."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    for file in files[:-MOST_FILES]:
        file.unlink(missing_ok=True)
