"""The one exception that means "the user can fix this": entry points print it on one line and exit with 2."""

import contextlib
import sys
from collections.abc import Iterator


class UserError(Exception):
    """A mistake in a config, a corpus, a command line or a run directory, told in one line that says what to do."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turn a UserError into one line on standard error and exit code 2; let every other exception through."""
    try:
        yield
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
