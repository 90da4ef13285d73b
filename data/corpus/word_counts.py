"""How often training sentences have each word, which tells rare words from frequent ones.

Words are those of folded sentences: without case and punctuation. They are stored as hashes, without text.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int, Int64, UInt64

from data.pairs import fold


@dataclass(frozen=True)
class WordCounts:
    """Sorted 8-byte BLAKE2b hashes of the distinct words of one side, and how often each occurs."""

    hashes: UInt64[np.ndarray, " words"]
    counts: Int64[np.ndarray, " words"]

    def of(self, words: Sequence[str]) -> Int64[np.ndarray, " words"]:
        """How often each of these folded words occurs; 0 for one that never does."""
        places, is_known = self._find(hash_words(words))
        found: Int64[np.ndarray, " words"] = np.zeros(len(words), np.int64)
        found[is_known] = self.counts[places[is_known]]
        return found

    @classmethod
    def none(cls) -> "WordCounts":
        """The counts of no word."""
        return cls(np.array([], np.uint64), np.array([], np.int64))

    def add(self, found: dict[str, int]) -> "WordCounts":
        """These and the counts of other words; those of words that are known are changed in place."""
        hashes, counts = hash_words(list(found)), np.fromiter(found.values(), np.int64, len(found))
        order = np.argsort(hashes)
        return self.merge(hashes[order], counts[order])

    def merge(self, hashes: UInt64[np.ndarray, " others"], counts: Int64[np.ndarray, " others"]) -> "WordCounts":
        """``add`` of words with these hashes, sorted and distinct."""
        places, is_known = self._find(hashes)
        self.counts[places[is_known]] += counts[is_known]
        places, hashes, counts = places[~is_known], hashes[~is_known], counts[~is_known]
        return WordCounts(np.insert(self.hashes, places, hashes), np.insert(self.counts, places, counts))

    def _find(self, wanted: UInt64[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
        """Where each hash is, or would be, and whether it is there."""
        places = np.searchsorted(self.hashes, wanted)
        is_known = places < len(self.hashes)
        is_known[is_known] = self.hashes[places[is_known]] == wanted[is_known]
        return places, is_known


def words_of(sentence: str) -> list[str]:
    """The words of a sentence: without case and punctuation, between spaces."""
    return fold(sentence).split()


def hash_words(words: Sequence[str]) -> UInt64[np.ndarray, " words"]:
    digests = b"".join([hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
