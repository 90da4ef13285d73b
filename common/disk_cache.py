"""A cache on disk, in the user's cache folder, for results that take seconds to compute at every start."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from common.digests import sha256
from common.errors import UserError
from common.files import cache_folder, write_atomically

MAX_FILES = 64  # beyond which the least recently used are deleted


def load_or_compute(name: str, compute: Callable[[], bytes]) -> bytes:
    """Return what ``compute`` returns, from the cache if this or another process has computed it before.

    ``name`` must identify everything that the result depends on. A damaged file is computed again; if the cache cannot
    be written, nothing is cached.
    """
    try:
        path = cache_folder() / "made" / name
    except RuntimeError:  # there is no home folder
        return compute()
    content = _read(path)
    if content is None:
        content = compute()
        with contextlib.suppress(UserError, OSError):
            write_atomically(path, f"{sha256(content)}\n".encode() + content)
            _evict(path.parent)
    return content


def _read(path: Path) -> bytes | None:
    """The content that follows its own SHA-256, or None if the file is missing or damaged."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    with contextlib.suppress(OSError):  # the folder may be read-only
        os.utime(path)
    return content if sha256(content).encode() == digest else None


def _evict(folder: Path) -> None:
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime)
    for file in files[:-MAX_FILES]:
        file.unlink(missing_ok=True)
