"""Pseudo-random choices that are the same on every machine."""

import hashlib
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")
REFILL_BELOW: Final = 2**64  # so large that the remainder hardly favours the first items


class Draw:
    """An endless supply of choices that depend on a name and a number alone."""

    def __init__(self, name: str, number: int) -> None:
        self._seed, self._digests, self._state = f"{name}\t{number}", 0, 0

    def pick(self, items: Sequence[T]) -> T:
        """Choose one item, each equally likely."""
        if self._state < REFILL_BELOW:
            digest = hashlib.blake2b(f"{self._seed}\t{self._digests}".encode()).digest()
            self._state, self._digests = int.from_bytes(digest, "big"), self._digests + 1
        self._state, index = divmod(self._state, len(items))
        return items[index]

    def chance(self, percent: int) -> bool:
        """True with a probability of ``percent`` in a hundred."""
        return self.pick(range(100)) < percent
