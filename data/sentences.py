"""Sentences in unnamed, memory-mapped temporary files, so that a corpus may be larger than memory.

The kernel reads the pages that are used and drops them when memory runs short. A file disappears with the last array
that maps it, or with the process: nothing is left behind.

Arrow's arrays are no replacement: importing pyarrow costs every start 0.06 to 0.1 s and 27 MB, and a window's tokens
are views into the flat array in any order, which packing copies with NumPy's index arithmetic.
"""

import mmap
import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt
from jaxtyping import Int, UInt8

from common.errors import UserError
from common.files import explain_write_errors

Item = TypeVar("Item")

BLOCK = 8192  # sentences in memory at once; larger blocks are no faster
LINE_FEED = 10
ANOTHER = ", or set TMPDIR=FOLDER"


def scratch_folder() -> Path:
    """The folder for the files: TMPDIR if set, else /var/tmp, else Python's folder for temporary files."""
    # Not the run directory: it must not exist before all checks have passed, and network file systems show an open
    # deleted file under another name. Not /tmp by default: many systems keep it in memory, but /var/tmp on disk.
    if "TMPDIR" not in os.environ and os.access("/var/tmp", os.W_OK | os.X_OK):
        return Path("/var/tmp")
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise UserError(f"{error.strerror}: make room, or set TMPDIR=FOLDER") from error


class GrowingArray:
    """A flat array on disk that grows block by block. UserError if the disk is full."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._dtype, self._length = np.dtype(dtype), 0
        with explain_write_errors(scratch_folder(), ANOTHER):
            self._file = tempfile.TemporaryFile(dir=scratch_folder())  # noqa: SIM115 (views outlive any block)
        weakref.finalize(self, self._file.close)

    def append(self, block: np.ndarray) -> None:
        # Written, not stored through a mapping, which would kill the process if the disk is full.
        with explain_write_errors(scratch_folder(), ANOTHER):
            self._file.write(np.ascontiguousarray(block, self._dtype).data)
        self._length += len(block)

    def __len__(self) -> int:
        return self._length

    def view(self) -> np.ndarray:
        """The array so far, mapped and read-only."""
        if not self._length:  # an empty file cannot be mapped
            return np.zeros(0, self._dtype)
        with explain_write_errors(scratch_folder(), ANOTHER):
            self._file.flush()
            return np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._dtype)


def move_to_disk(array: np.ndarray) -> np.ndarray:
    """Copy a flat array to disk and map it."""
    copy = GrowingArray(array.dtype)
    copy.append(array)
    return copy.view()


class Sentences(Sequence[str]):
    """Sentence i is the line ``text[start[i] : start[i + 1]]``, decoded at every access."""

    def __init__(self, text: UInt8[np.ndarray, " bytes"], start: Int[np.ndarray, " lines_and_end"]) -> None:
        self._text, self._start = text.data, start

    @property
    def arrays(self) -> tuple[UInt8[np.ndarray, " bytes"], Int[np.ndarray, " lines_and_end"]]:
        """The arguments of ``Sentences``."""
        return np.frombuffer(self._text, np.uint8), self._start

    def __len__(self) -> int:
        return len(self._start) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        chosen = range(len(self))[index]  # raises IndexError
        if isinstance(chosen, int):
            return self._lines(chosen, chosen + 1)[0]
        return self._lines(chosen.start, chosen.stop) if chosen.step == 1 else [self[i] for i in chosen]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), BLOCK):
            yield from self._lines(first, min(first + BLOCK, len(self)))

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is a sequence of the same sentences."""
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def _lines(self, first: int, last: int) -> list[str]:
        return str(self._text[self._start[first] : self._start[max(first, last)]], "utf-8").split("\n")[:-1]


class SentenceWriter:
    """Writes sentences block by block. ValueError if one contains a line feed."""

    def __init__(self) -> None:
        self._text, self._start = GrowingArray(np.uint8), GrowingArray(np.int64)
        self._start.append(np.zeros(1))

    def append(self, sentences: Sequence[str]) -> None:
        text = np.frombuffer("".join([f"{sentence}\n" for sentence in sentences]).encode(), np.uint8)
        ends = np.flatnonzero(text == LINE_FEED) + 1
        if len(ends) != len(sentences):
            raise ValueError("a sentence contains a line feed")
        self._start.append(len(self._text) + ends)
        self._text.append(text)

    def view(self) -> Sentences:
        return Sentences(self._text.view(), self._start.view())


def store_sentences(sentences: Iterable[str]) -> Sentences:
    """Write sentences to disk and map them."""
    writer = SentenceWriter()
    for block in in_blocks(sentences):
        writer.append(block)
    return writer.view()


def in_blocks(items: Iterable[Item], size: int = BLOCK) -> Iterator[list[Item]]:
    """Lists of up to ``size`` items."""
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block
