"""Sentences as lines of a memory-mapped text: ten million of them use no memory that the kernel cannot reclaim.

Arrow's string arrays, mapped from an IPC file, are as fast, but would spare a dozen lines here and cost every start
0.06 to 0.1 s and 27 MB for importing pyarrow.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq
from typing import TypeVar, overload

import numpy as np
from jaxtyping import Int, UInt8

from data.store.mmap_array import GrowingArray

Item = TypeVar("Item")

BLOCK = 8192  # sentences in memory at once; larger blocks are no faster
LINE_FEED = 10


class Sentences(Sequence[str]):
    """Sentence i is the line ``text[start[i] : start[i + 1]]``, decoded at every access."""

    def __init__(self, text: UInt8[np.ndarray, " bytes"], start: Int[np.ndarray, " lines_and_end"]) -> None:
        self._text, self._start = text.data, start

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
        text = self._text[self._start[first] : self._start[max(first, last)]]
        return str(text, "utf-8").split("\n")[:-1]


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

    def finish(self) -> Sentences:
        return Sentences(self._text.finish(), self._start.finish())


def store_sentences(sentences: Iterable[str]) -> Sentences:
    """Write sentences to disk and map them."""
    writer = SentenceWriter()
    for block in in_blocks(sentences):
        writer.append(block)
    return writer.finish()


def in_blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Lists of up to ``BLOCK`` items."""
    rest = iter(items)
    while block := list(islice(rest, BLOCK)):
        yield block
