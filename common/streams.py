"""Standard output and standard error take any text, whatever their encoding, and show it without obeying it."""

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
    """Let a closed standard stream (``>&-``) be the null device. The next file opened would get its number and text."""
    sys.stdin = sys.stdin or _open_null_device("r")
    sys.stdout = sys.stdout or _open_null_device("w")
    sys.stderr = sys.stderr or _open_null_device("w")


def _open_null_device(mode: str) -> TextIO:
    file = cast(TextIO, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (as long as the process)
    os.set_inheritable(file.fileno(), True)
    return file


def escape_on_streams() -> None:
    """Escape from now on what the encoding of a stream lacks, and what would steer the terminal of standard output.

    Both are escaped as in JSON, so that lines of JSON stay the same JSON. Standard error has progress bars, which do
    steer it: ``common.errors.write_note`` escapes lines there.
    """
    codecs.register_error(ESCAPE, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # it is closed, or takes no more
                stream.reconfigure(errors=ESCAPE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        write = partial(type(sys.stdout).write, sys.stdout)
        sys.stdout.write = lambda text: write(escape_controls(text))  # type: ignore[method-assign]


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
