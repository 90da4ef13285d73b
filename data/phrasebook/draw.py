"""Choices that look random and are the same on every machine."""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")
ENOUGH: Final = 2**64  # so that the remainder hardly favours the first items


class Draw:
    """An endless supply of choices that depend on nothing but a name and a number."""

    def __init__(self, name: str, number: int) -> None:
        self._seed, self._digests, self._state = f"{name}\t{number}", 0, 0

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, each equally likely."""
        if self._state < ENOUGH:
            digest = hashlib.blake2b(f"{self._seed}\t{self._digests}".encode()).digest()
            self._state, self._digests = int.from_bytes(digest, "big"), self._digests + 1
        self._state, index = divmod(self._state, len(items))
        return items[index]

    def chance(self, percent: int) -> bool:
        """True so often in a hundred."""
        return self.pick(range(100)) < percent
