"""How often a run's training sentences have each word, kept so that comparisons can tell rare words from frequent ones.

Words are those of folded sentences: without case and punctuation. A run keeps hashes of them and no text.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt64

from common.errors import UserError
from common.files import write_atomically
from data.pairs import Pairs, fold, fold_all
from data.store import in_blocks

COUNTS_FILE = "training_words.npz"


@dataclass(frozen=True)
class WordCounts:
    """Sorted 8-byte BLAKE2b hashes of the distinct words of one side, and how often each occurs."""

    hashes: UInt64[np.ndarray, " words"]
    counts: Int64[np.ndarray, " words"]

    def of(self, words: Sequence[str]) -> Int64[np.ndarray, " words"]:
        """How often each of these folded words occurs; 0 for one that never does."""
        wanted = hash_words(words)
        known = np.append(self.hashes, np.uint64(0))
        places = np.searchsorted(self.hashes, wanted)
        return np.where(known[places] == wanted, np.append(self.counts, 0)[places], 0)

    def add(self, hashes: UInt64[np.ndarray, " more"], counts: Int64[np.ndarray, " more"]) -> "WordCounts":
        """These and others, among which words may be repeated."""
        hashes, counts = np.concatenate([self.hashes, hashes]), np.concatenate([self.counts, counts])
        order = np.argsort(hashes, kind="stable")  # fast where the first part is sorted
        hashes, counts = hashes[order], counts[order]
        first = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
        return WordCounts(hashes[first], np.add.reduceat(counts, first) if len(first) else counts)


def words_of(sentence: str) -> list[str]:
    """The words of a sentence: without case and punctuation, between spaces."""
    return fold(sentence).split()


def count_words(sentences: Iterable[str]) -> WordCounts:
    """Count the words of all sentences, in memory that grows with the distinct words, by some 16 bytes for each."""
    known = WordCounts(np.array([], np.uint64), np.array([], np.int64))
    for block in in_blocks(sentences):
        found = Counter(chain.from_iterable(folded.split() for folded in fold_all(block)))
        known = known.add(hash_words(list(found)), np.fromiter(found.values(), np.int64, len(found)))
    return known


def hash_words(words: Sequence[str]) -> UInt64[np.ndarray, " words"]:
    digests = b"".join([hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words])
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def save_word_counts(run_dir: Path, training: Pairs) -> None:
    """Write the counts of both sides."""
    source, target = count_words(training.sources), count_words(training.targets)
    content = io.BytesIO()
    np.savez(
        content, source=source.hashes, source_counts=source.counts, target=target.hashes, target_counts=target.counts
    )
    write_atomically(run_dir / COUNTS_FILE, content.getvalue())


def load_word_counts(run_dir: Path, side: str) -> WordCounts | None:
    """Read what ``save_word_counts`` wrote of a ``side``, unpickling nothing.

    None if the run has no counts, as those of older versions; UserError if they are damaged.
    """
    path = run_dir / COUNTS_FILE
    try:
        with np.load(path, allow_pickle=False) as arrays:
            hashes, counts = arrays[side], arrays[f"{side}_counts"]
        if [hashes.dtype, counts.dtype] != [np.uint64, np.int64] or hashes.ndim != 1 or hashes.shape != counts.shape:
            raise ValueError("other arrays")
    except FileNotFoundError:
        return None
    except Exception as error:  # of zipfile, zlib and NumPy: they have no common ancestor
        raise UserError(
            f"{path} is damaged: continue the run with train.py, which writes it again, or delete it"
        ) from error
    return WordCounts(hashes, counts)
