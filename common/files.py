"""Files that a reader, or a restart after a crash, sees with their old content or their new, never half written."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import UserError, explain_os_error


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` (text as UTF-8) to a temporary file, flush it to disk, and rename it to ``path``.

    Raises UserError if the disk is full, gone or read-only; ``path`` is then unchanged.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with explain_write_errors(path):
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
    """Append a line and flush it to disk. Raises UserError as ``write_atomically`` does.

    A crash may leave half a line, which readers drop.
    """
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
