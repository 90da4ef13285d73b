"""Arrays in unnamed temporary files, mapped into memory, so that a corpus may be larger than memory.

The kernel reads the pages that are used and drops them when memory runs short. A file disappears with the last array
that maps it, or with the process: nothing is left behind.
"""

import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.files import explain_write_errors


def scratch_folder() -> Path:
    """Where the files go: TMPDIR if set, else /var/tmp, else Python's folder for temporary files."""
    # Not the run directory: it must not exist before all checks have passed, and network file systems show an open
    # deleted file under another name. Not /tmp by default: many systems keep it in memory; /var/tmp is on a disk.
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK | os.X_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


class GrowingArray:
    """A flat array on disk, appended to block by block. UserError if the disk is full."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        with explain_write_errors(scratch_folder()):
            self._file = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115 (views outlive any block)

    def append(self, block: np.ndarray) -> None:
        # Written, not stored through a mapping: on a full disk that would kill the process.
        with explain_write_errors(scratch_folder()):
            self._file.write(np.ascontiguousarray(block, self._dtype).data)
        self._length += len(block)

    def __len__(self) -> int:
        return self._length

    def view(self) -> np.ndarray:
        """The array so far, mapped and read-only."""
        if not self._length:  # an empty file cannot be mapped
            return np.zeros(0, self._dtype)
        with explain_write_errors(scratch_folder()):
            self._file.flush()
            return np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype)

    def finish(self) -> np.ndarray:
        """The complete array, mapped and read-only. Nothing can be appended afterwards."""
        with self._file:
            return self.view()


def move_to_disk(array: np.ndarray) -> np.ndarray:
    """Copy a flat array to disk and map it."""
    copy = GrowingArray(array.dtype)
    copy.append(array)
    return copy.finish()
