"""Standard output and standard error take any text, whatever their encoding."""

import codecs
import io
import json
import sys
from contextlib import suppress

ESCAPE = "as in JSON"  # the name of an error handler


def escape_what_streams_lack() -> None:
    """Letters that the encoding of a stream lacks are escaped from now on, so that lines of JSON stay JSON."""
    codecs.register_error(ESCAPE, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # it is closed, or takes no more
                stream.reconfigure(errors=ESCAPE)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
