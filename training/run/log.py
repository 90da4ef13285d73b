"""The log of a run, with the time of each line, on standard output and in log.txt; warnings go to standard error."""

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
    """Add a line with the time to log.txt and standard output, above the bar; UserError if log.txt is not writable."""
    line = _log(run_dir, text, now)
    try:
        with tqdm.external_write_mode():
            print(line, flush=True)
    except BrokenPipeError:  # the reader, such as head, has read enough
        discard_output()
    except (OSError, ValueError) as error:  # a full disk, a lost terminal, or closed
        discard_output()
        warn(run_dir, f"cannot write to standard output any more ({error}); the run's log is in {run_dir / LOG}")


def warn(run_dir: Path, text: str) -> None:
    """Add a warning to log.txt and standard error, above the bar."""
    _log(run_dir, f"warning: {text}")
    write_note(f"warning: {text}")


def _log(run_dir: Path, text: str, now: datetime | None = None) -> str:
    """The line for log.txt, escaped so that text from a corpus cannot control the terminal of a reader."""
    line = f"{now or datetime.now(UTC):%Y-%m-%d %H:%M:%SZ} {escape_controls(text)}"
    append_line(run_dir / LOG, line)
    return line


def discard_output() -> None:
    """Redirect standard output to the null device: at exit, Python would retry what could not be written, and fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
