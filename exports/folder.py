"""A folder that is written whole or not at all: made under another name, flushed to disk, then renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import UserError
from common.files import explain_write_errors


@contextmanager
def write_whole(folder: Path) -> Iterator[Path]:
    """Give the block a new folder to write to, which becomes ``folder`` if the block ends without an exception.

    UserError if there is anything but an empty folder in its place, or if it cannot be written.
    """
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())):
        raise UserError(f"{folder} exists and is not an empty folder: name another, or move it away")
    place = Path(os.path.abspath(folder))  # so that . has a name
    temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    with explain_write_errors(folder):
        temporary.mkdir(parents=True)
        try:
            yield temporary
            for path in (*temporary.rglob("*"), temporary):
                flush(path)
            os.replace(temporary, place)
            flush(place.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
