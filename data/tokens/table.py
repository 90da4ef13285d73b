"""Sentences as token ids in flat arrays, which may be mapped from files."""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from common.special_tokens import EOS
from data.sentences import GrowingArray


class TokenTable(NamedTuple):
    """Sentences in one flat array, each ending in EOS: sentence i is ``flat[start[i] : start[i] + length[i]]``."""

    flat: Int32[np.ndarray, " tokens"]
    start: Int[np.ndarray, " sentences"]
    length: Int[np.ndarray, " sentences"]

    def take(self, chosen: slice | Int[np.ndarray, " chosen"] | Bool[np.ndarray, " sentences"]) -> "TokenTable":
        """The chosen sentences; the flat array is shared."""
        return TokenTable(self.flat, self.start[chosen], self.length[chosen])

    def compact(self) -> "TokenTable":
        """The same sentences, consecutive in a new flat array."""
        start = np.cumsum(self.length) - self.length
        index = np.repeat(self.start - start, self.length) + np.arange(self.length.sum())
        return TokenTable(self.flat[index], start, self.length)


def token_table(sentences: Iterable[list[int]]) -> TokenTable:
    """Build a table from lists of ids without EOS."""
    closed = [[*ids, EOS] for ids in sentences]
    length = np.fromiter(map(len, closed), dtype=np.int64, count=len(closed))
    flat = np.fromiter(chain.from_iterable(closed), dtype=np.int32, count=int(length.sum()))
    return TokenTable(flat, np.cumsum(length) - length, length)


class GrowingTable:
    """A token table on disk that grows by appending tables."""

    def __init__(self) -> None:
        self._flat, self._start, self._length = GrowingArray(np.int32), GrowingArray(np.int64), GrowingArray(np.int64)

    def __len__(self) -> int:
        return len(self._start)

    def append(self, table: TokenTable) -> None:
        self._start.append(len(self._flat) + table.start)
        self._length.append(table.length)
        self._flat.append(table.flat)

    def view(self) -> TokenTable:
        return TokenTable(self._flat.view(), self._start.view(), self._length.view())


def with_first(table: TokenTable, first: Int[np.ndarray, " sentences"]) -> TokenTable:
    """Put a token before each sentence, in a new flat array."""
    flat, start, length = table.compact()
    return TokenTable(np.insert(flat, start, first), start + np.arange(len(start)), length + 1)


def replace_where(mask: Bool[np.ndarray, " sentences"], some: TokenTable, others: TokenTable) -> TokenTable:
    """The sentences of ``some``, in order, where ``mask`` is true, and those of ``others`` elsewhere."""
    start, length = others.start + len(some.flat), others.length.copy()
    start[mask], length[mask] = some.start, some.length
    return TokenTable(np.concatenate([some.flat, others.flat]), start, length)


def fits(sources: TokenTable, targets: TokenTable, capacity: tuple[int, int]) -> Bool[np.ndarray, " sentences"]:
    """Whether each pair fits into a row with the capacity (S, T)."""
    return (sources.length <= capacity[0]) & (targets.length <= capacity[1])
