"""Files that a reader, or a restart after a crash, sees with their old content or their new, never half written."""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from common.errors import UserError, explain_os_error


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) under another name, flush it, rename it. A UserError leaves ``path`` alone."""
    with open_atomically(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """As ``write_atomically``, for content that is written piece by piece inside the ``with`` block."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
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


def append_line(path: Path, line: str) -> None:
    """Append a line and flush it to disk, or raise UserError. A crash may leave half a line, which readers drop."""
    with explain_write_errors(path), open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if the file is missing or holds anything else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def sha256(content: str | bytes) -> str:
    """SHA-256 of bytes, or of a text's UTF-8, in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def sha256_of_file(path: Path) -> str:
    """SHA-256 of a file's content, as sha256sum prints it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """This project's folder in the user's cache. RuntimeError if there is no home folder."""
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or usual) / "puente"


@contextlib.contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an OSError inside into a UserError that names ``path`` and says what to do."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {explain_os_error(error)}") from error


def remove_leftovers(folder: Path) -> None:
    """Delete the temporary files of killed ``write_atomically`` calls; those of running processes stay."""
    for path in folder.glob(".*.tmp"):
        process = path.name.split(".")[-2]
        if process.isdigit() and not _is_running(int(process)):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it belongs to another user
    return True
