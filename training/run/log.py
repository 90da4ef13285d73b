"""The lines of a run, each with its time: on standard output and in log.txt. Warnings go to standard error instead."""

import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm

from common.errors import write_note
from common.files import append_line
from common.text import escape_controls
from training.run.layout import LOG


def tell(run_dir: Path, text: str, now: datetime | None = None) -> None:
    """Add a line to log.txt and to standard output, with the time, above the bar; UserError if log.txt refuses it."""
    line = _log(run_dir, text, now)
    try:
        with tqdm.external_write_mode():
            print(line, flush=True)
    except BrokenPipeError:  # its reader, such as head, has all it wants
        discard_output()
    except (OSError, ValueError) as error:  # a full disk, a lost terminal, or closed
        discard_output()
        warn(run_dir, f"standard output takes no more ({error}); the lines of the run are in {run_dir / LOG}")


def warn(run_dir: Path, text: str) -> None:
    """Add a warning to log.txt and to standard error, above the bar."""
    _log(run_dir, f"warning: {text}")
    write_note(f"warning: {text}")


def _log(run_dir: Path, text: str, now: datetime | None = None) -> str:
    """The line that log.txt gets: text from a corpus steers no terminal on which somebody reads it."""
    line = f"{now or datetime.now(UTC):%Y-%m-%d %H:%M:%SZ} {escape_controls(text)}"
    append_line(run_dir / LOG, line)
    return line


def discard_output() -> None:
    """Let standard output go nowhere: what could not be written would be tried again, and fail, when Python ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
