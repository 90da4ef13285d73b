"""Sentences as the lines of a mapped text: ten million of them take no memory that the kernel cannot have back."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import eq
from typing import TypeVar, overload

import numpy as np
from jaxtyping import Int, UInt8

from data.store.mmap_array import GrowingArray

Item = TypeVar("Item")

BLOCK = 8192  # sentences that are in memory at once: more are no faster
LINE_FEED = 10


class Sentences(Sequence[str]):
    """Sentence i is the line ``text[start[i] : start[i + 1]]``, decoded anew each time that it is asked for."""

    def __init__(self, text: UInt8[np.ndarray, " n"], start: Int[np.ndarray, " lines"]) -> None:
        self._text, self._start = text.data, start  # and last in ``start``, where a next line would begin

    def __len__(self) -> int:
        return len(self._start) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        chosen = range(len(self))[index]  # or an IndexError
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
    """Sentences that are written block by block. ValueError for one that has a line feed."""

    def __init__(self) -> None:
        self._text, self._start, self._bytes = GrowingArray(np.uint8), GrowingArray(np.int64), 0
        self._start.append(np.zeros(1))

    def append(self, sentences: Sequence[str]) -> None:
        text = np.frombuffer("".join([f"{sentence}\n" for sentence in sentences]).encode(), np.uint8)
        ends = np.flatnonzero(text == LINE_FEED) + 1
        if len(ends) != len(sentences):
            raise ValueError("a sentence has a line feed")
        self._text.append(text)
        self._start.append(self._bytes + ends)
        self._bytes += len(text)

    def sentences(self) -> Sentences:
        return Sentences(self._text.mapped(), self._start.mapped())


def stored(sentences: Iterable[str]) -> Sentences:
    """The sentences, written and mapped."""
    writer = SentenceWriter()
    for block in blocks_of(sentences):
        writer.append(block)
    return writer.sentences()


def blocks_of(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Lists of up to ``BLOCK`` items."""
    rest = iter(items)
    while block := list(islice(rest, BLOCK)):
        yield block
