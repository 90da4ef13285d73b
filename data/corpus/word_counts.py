"""How often training sentences have each word, which tells rare words from frequent ones.

Words are those of folded sentences: without case and punctuation. They are stored as hashes, without text.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from jaxtyping import Bool, Int, Int64, UInt64

from data.corpus.splits import Hashes, hash_folded, sorted_distinct
from data.pairs import fold, fold_all
from data.sentences import in_blocks, move_to_disk


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

    def add(self, found: dict[str, int]) -> "WordCounts":
        """These and the counts of other words; those of words that are known are changed in place."""
        hashes, counts = hash_words(list(found)), np.fromiter(found.values(), np.int64, len(found))
        order = np.argsort(hashes)
        hashes, counts = hashes[order], counts[order]
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


def summarise(sentences: Iterable[str]) -> tuple[Hashes, WordCounts]:
    """``hash_sentences`` of the sentences, and how often they have each word, mapped.

    Memory grows with the distinct sentences and words by a few bytes each.
    """
    digests, words = bytearray(), WordCounts(np.array([], np.uint64), np.array([], np.int64))
    for block in in_blocks(sentences):
        folded = list(fold_all(block))
        digests += hash_folded(folded)
        words = words.add(Counter(chain.from_iterable(sentence.split() for sentence in folded)))
    hashes = sorted_distinct(np.frombuffer(digests, dtype="<u8"))
    return move_to_disk(hashes), WordCounts(move_to_disk(words.hashes), move_to_disk(words.counts))
