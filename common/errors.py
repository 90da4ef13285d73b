"""The one exception that means "the user can fix this": entry points print it on one line and exit with 2."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

from common.text import in_brief

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)
BAD_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR)
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.EIO, errno.ENODEV, errno.ENXIO, errno.ENOTCONN)


class UserError(Exception):
    """A mistake in a config, a corpus, a command line or a run directory, told in one line that says what to do."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turn a UserError, a fault of the disk and a lack of memory into one line on standard error and exit code 2.

    Every other exception passes: it is a fault of this program.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # A reader such as head has what it wanted. The signal itself stays ignored: Orbax's threads write to pipes of
        # their own, which may be closed, and it would end the program without a word.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(128 + 13)
    except UserError as error:
        told = str(error)
    except OSError as error:
        if error.errno not in (*NO_ROOM, *NOT_ALLOWED, *BAD_NAME, *GONE):
            raise
        told = f"{error.filename or 'a file'}: {in_words(error)}"
    except Exception as error:
        if not lacks_memory(error):
            raise
        told = (
            f"out of memory ({in_brief(str(error))}): make data.batch_rows, data.row_length or the model smaller, or "
            "training.accumulation larger; dry_run=true tells how much a training step takes"
        )
    else:
        return
    print(f"error: {told}", file=sys.stderr)
    sys.exit(2)


def lacks_memory(error: Exception) -> bool:
    """Whether Python or NumPy, or XLA on whatever device, asked for memory that there is not."""
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def in_words(error: OSError) -> str:
    """What the system says, and what to do about it."""
    said = error.strerror or str(error)
    if error.errno in NO_ROOM:
        return f"{said}; make room, then start the same command again"
    if error.errno in NOT_ALLOWED:
        return f"{said}; make it writable, or choose another folder (run_dir=FOLDER)"
    if error.errno in BAD_NAME:
        return f"{said}; choose another name"
    if error.errno in GONE:
        return f"{said}; is its disk still there?"
    return said
