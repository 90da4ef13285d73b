"""Make standard output and standard error accept any text, whatever their encoding, and escape terminal controls."""

import codecs
import io
import json
import os
import sys
from contextlib import suppress
from functools import partial
from typing import TextIO, cast

from common.text import escape_controls

ESCAPE = "as in JSON"  # the name of an error handler


def open_closed_streams() -> None:
    """Replace closed standard streams (``>&-``) with the null device, or the next file opened would get their text."""
    sys.stdin = sys.stdin or _open_null_device("r")
    sys.stdout = sys.stdout or _open_null_device("w")
    sys.stderr = sys.stderr or _open_null_device("w")


def _open_null_device(mode: str) -> TextIO:
    file = cast(TextIO, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (as long as the process)
    os.set_inheritable(file.fileno(), True)
    return file


def escape_on_streams() -> None:
    """From now on, escape characters that a stream's encoding lacks, and terminal controls on standard output.

    Both are escaped as in JSON, so that lines of JSON keep their meaning. Standard error has progress bars, which need
    terminal controls: ``common.errors.write_note`` escapes lines there.
    """
    codecs.register_error(ESCAPE, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # it is closed, or not writable
                stream.reconfigure(errors=ESCAPE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        write = partial(type(sys.stdout).write, sys.stdout)
        sys.stdout.write = lambda text: write(escape_controls(text))  # type: ignore[method-assign]


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
