"""Errors that the user can fix: one line on standard error and exit code 2."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator

from common.streams import escape_on_streams, open_closed_streams
from common.text import escape_controls, in_brief

DISK_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE, errno.EIO, errno.ENODEV, errno.ENXIO, errno.ENOTCONN)
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ADVICE = {
    DISK_FULL: "make room, then start the same command again",
    (errno.EROFS, errno.EACCES, errno.EPERM): "make it writable, or choose another folder (train.py: run_dir=FOLDER)",
    (errno.EMFILE, errno.ENFILE): "allow more, as with ulimit -n 1024",
    (errno.ENAMETOOLONG, errno.ELOOP, errno.EISDIR): "choose another name",
    DISK_GONE: "is its disk still there?",
}
ADVICE_BY_CODE = {code: advice for codes, advice in ADVICE.items() for code in codes}


class UserError(Exception):
    """A mistake in a config, corpus, command line or run directory, with a one-line message that says how to fix it."""


@contextlib.contextmanager
def exit_on_user_error() -> Iterator[None]:
    """Turn a UserError, a disk failure or lack of memory into one line and exit code 2; other exceptions are bugs.

    Text that the terminal's encoding lacks, or that would control the terminal, is escaped and causes no error.
    """
    open_closed_streams()
    escape_on_streams()
    try:
        with explain_lack_of_memory("something smaller, or more memory, is needed"):
            yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as head, has read enough. SIGPIPE itself stays ignored: Orbax's threads write to their own
        # pipes, which may be closed, and the signal would end the program without a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(128 + 13)
    except UserError as error:
        message = str(error)
    except OSError as error:
        if error.errno not in ADVICE_BY_CODE:
            raise
        message = f"{error.filename or 'standard output, or a file'}: {explain_os_error(error)}"
    else:
        return
    write_note(f"error: {message}")
    sys.exit(2)


def write_note(line: str) -> None:
    """Write a line to standard error, above a progress bar; if it is not writable (a full disk), continue without."""
    from tqdm import tqdm  # takes a tenth of a second, so imported only when needed

    try:
        with tqdm.external_write_mode(sys.stderr):
            print(escape_controls(line), file=sys.stderr, flush=True)
    except (OSError, ValueError):  # ValueError: it is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # otherwise Python would try again at exit, and fail


@contextlib.contextmanager
def explain_lack_of_memory(advice: str) -> Iterator[None]:
    """Turn a lack of memory in the block into a UserError with this advice."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        # Python and NumPy raise MemoryError; XLA, on any device, reports RESOURCE_EXHAUSTED.
        if not (isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)):
            raise
        raise UserError(f"out of memory ({in_brief(str(error))}): {advice}") from None


def explain_os_error(error: OSError) -> str:
    message = error.strerror or str(error)
    return f"{message}; {ADVICE_BY_CODE[error.errno]}" if error.errno in ADVICE_BY_CODE else message
