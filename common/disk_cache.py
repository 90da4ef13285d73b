"""A cache on disk, in the user's cache folder, for results that take seconds to compute at every start."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from common.errors import UserError
from common.files import cache_folder, sha256, write_atomically

MAX_FILES = 256  # beyond which the least recently used are deleted


def load_or_compute(name: str, compute: Callable[[], bytes]) -> bytes:
    """Return what ``compute`` returns, from the cache if possible; ``name`` must identify all that it depends on."""
    try:
        path = cache_folder() / "made" / name
    except RuntimeError:  # there is no home folder
        return compute()
    content = _read(path)
    if content is None:
        content = compute()
        with contextlib.suppress(UserError, OSError):
            write_atomically(path, f"{sha256(content)}\n".encode() + content)
            for file in sorted(path.parent.iterdir(), key=lambda file: file.stat().st_mtime)[:-MAX_FILES]:
                file.unlink(missing_ok=True)
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
