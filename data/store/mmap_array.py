"""Arrays that lie in files without a name, so that a corpus may be larger than memory.

The kernel reads what of such a file is used, keeps it while there is room, and takes the room back without being
asked. A file is gone with the last array that needs it, and with the process that dies: nothing is ever left behind.
"""

import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.files import explain_write_errors


def scratch() -> Path:
    """The folder of these files: TMPDIR, else /var/tmp, else what Python takes for temporary files."""
    # Not the run directory: there is none before all checks have passed, and a network's file system shows a file that
    # is open and deleted under another name. Not /tmp unless asked: many systems keep it in memory, which is what these
    # files are to spare; /var/tmp is by convention on a disk.
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK | os.X_OK):
        return Path("/var/tmp")
    return Path(tempfile.gettempdir())


class GrowingArray:
    """A flat array that is written block by block. UserError where the disk is full."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        with explain_write_errors(scratch()):
            self._file = tempfile.TemporaryFile(dir=scratch())  # noqa: SIM115 (the mapping outlives any block)

    def append(self, block: np.ndarray) -> None:
        # Written, and not stored into a mapping: on a full disk that would kill the process.
        with explain_write_errors(scratch()):
            self._file.write(np.ascontiguousarray(block, self._dtype).data)
        self._length += len(block)

    def __len__(self) -> int:
        return self._length

    def so_far(self) -> np.ndarray:
        """All that was appended, mapped, to be read only."""
        if not self._length:  # nothing cannot be mapped
            return np.zeros(0, self._dtype)
        with explain_write_errors(scratch()):
            self._file.flush()
            return np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype)

    def mapped(self) -> np.ndarray:
        """The same. Nothing can be appended after it."""
        with self._file:
            return self.so_far()


def on_disk(array: np.ndarray) -> np.ndarray:
    """The same flat array, mapped."""
    copy = GrowingArray(array.dtype)
    copy.append(array)
    return copy.mapped()
