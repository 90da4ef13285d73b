"""Epochs and their windows: which pairs come when, and in which rows.

An epoch is a permutation of its visits to the pairs, cut into windows, which are sampled, packed and permuted as a
whole. Random numbers are Philox's raw bits and argsort, because NumPy does not promise stable ``Generator`` methods.

P sentence pair.
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from jaxtyping import Float, Int, UInt64

from common.errors import UserError
from common.files import write_atomically
from data.batches.encoded_pairs import ALGORITHM, EncodedPairs
from data.batches.packing import Packed, in_row_order, place
from data.batches.token_table import TokenTable, choose, fits
from data.config import DataConfig
from data.subword_sampling import Segmentations
from data.tokenizer import Tokenizer

ORDER, ROWS, SOURCE_SUBWORDS, TARGET_SUBWORDS, VISITS = range(5)  # the uses of random bits
MAX_CACHED_PAIRS = 2_000_000  # in larger corpora segmentations are not cached: they take some 3 kB of disk a pair


def random_bits(count: int, seed: int, epoch: int, use: int, window: int = 0) -> UInt64[np.ndarray, " count"]:
    """Philox bits from an independent stream for each seed, epoch, use and window."""
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, 0, use, window], dtype=np.uint64)).random_raw(count)


def permutation(count: int, seed: int, epoch: int, use: int, window: int = 0) -> Int[np.ndarray, " count"]:
    return np.argsort(random_bits(count, seed, epoch, use, window), kind="stable")


def visits_in(epoch: int, weights: Float[np.ndarray, " P"], seed: int) -> Int[np.ndarray, " P"]:
    """How often an epoch visits each pair: its weight on average, and never a whole visit off over any first epochs.

    A pair's visits after e epochs are the integer part of weight · e + u, where u is drawn once for each pair.
    """
    u = (random_bits(len(weights), seed, 0, VISITS) >> np.uint64(44)) / 2**20  # few enough bits to add exactly to 1 · e
    before, after = np.floor(weights * epoch + u), np.floor(weights * (epoch + 1) + u)
    return (after - before).astype(np.int64)


class Epochs:
    """The visits of every epoch. ``weights`` says how often an epoch visits each pair on average (None: once)."""

    def __init__(self, pairs: int, weights: Float[np.ndarray, " P"] | None, seed: int) -> None:
        self.pairs, self.weights, self.seed = pairs, weights, seed
        self._sizes: dict[int, int] = {}
        self._last_order = -1, np.zeros(0, dtype=np.int64)

    def size(self, epoch: int) -> int:
        """The number of visits in an epoch."""
        if self.weights is None:
            return self.pairs
        if epoch not in self._sizes:
            self._sizes[epoch] = int(visits_in(epoch, self.weights, self.seed).sum())
        return self._sizes[epoch]

    def order(self, epoch: int) -> Int[np.ndarray, " visits"]:
        """The pair of each visit."""
        if self._last_order[0] != epoch:
            order = permutation(self.size(epoch), self.seed, epoch, ORDER)
            if self.weights is not None:
                order = np.repeat(np.arange(self.pairs), visits_in(epoch, self.weights, self.seed))[order]
            self._last_order = epoch, order
        return self._last_order[1]


class RowCounts(dict[tuple[int, int], int]):
    """Rows by (epoch, window), read from and written to a file; a file whose checksum is wrong is ignored."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        super().__init__()
        self.path, self.key = path, f"{fingerprint} {ALGORITHM} {sentencepiece.__version__}"
        try:
            saved = json.loads(path.read_text()) if path else {"rows": []}
            if path is None or saved["check"] == self.checksum(saved["rows"]):
                self.update({(epoch, window): rows for epoch, window, rows in saved["rows"]})
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # no cache, or a damaged one: windows are packed again

    def add(self, window: tuple[int, int], rows: int) -> None:
        if self.get(window) == rows:
            return
        self[window] = rows
        if self.path and self.path.parent.exists():  # a run directory whose disk is gone must not be created anew
            table = [[*key, rows] for key, rows in sorted(self.items())]
            with contextlib.suppress(UserError):  # a read-only folder does not stop a run
                write_atomically(self.path, json.dumps({"check": self.checksum(table), "rows": table}) + "\n")

    def checksum(self, rows: Any) -> str:
        return hashlib.sha256(f"{self.key} {json.dumps(rows)}".encode()).hexdigest()


class Windows:
    """The packed pairs of every (epoch, window). Safe to use from several threads."""

    def __init__(
        self, pairs: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int, row_counts: RowCounts
    ) -> None:
        self.pairs, self.tokenizer, self.config, self.seed = pairs, tokenizer, config, seed
        self.epochs, self.row_counts = Epochs(len(pairs), pairs.weights, seed), row_counts
        self._recent: dict[tuple[int, int], Packed] = {}
        self._lock = threading.Lock()  # held while a window is packed; the row counts are read without it
        self._segmentations: dict[int, Segmentations] = {}
        if config.subword_sampling > 0 and len(pairs) <= MAX_CACHED_PAIRS:
            self._segmentations[SOURCE_SUBWORDS] = Segmentations(tokenizer, pairs.texts.sources)
            self._segmentations[TARGET_SUBWORDS] = Segmentations(tokenizer, pairs.texts.targets)

    def count(self, epoch: int) -> int:
        """Windows in an epoch."""
        return -(-self.epochs.size(epoch) // self.config.window)

    def rows(self, epoch: int, window: int) -> int:
        """Rows in a window."""
        return self.row_counts.get((epoch, window)) or self.packed(epoch, window).placement.rows

    def packed(self, epoch: int, window: int) -> Packed:
        """The pairs of a window. The last two windows are cached, because a batch may span two."""
        with self._lock:
            if (epoch, window) not in self._recent:
                packed = self._pack(epoch, window)
                self.row_counts.add((epoch, window), packed.placement.rows)
                self._recent = dict([*self._recent.items(), ((epoch, window), packed)][-2:])
            return self._recent[epoch, window]

    def _pack(self, epoch: int, window: int) -> Packed:
        chosen = self.epochs.order(epoch)[window * self.config.window : (window + 1) * self.config.window]
        sources, targets = self.pairs.sources.take(chosen), self.pairs.targets.take(chosen)
        if self.config.subword_sampling > 0:
            sources, targets = self._sample(chosen, sources, targets, epoch, window)
        placement = place(sources.length, targets.length, self.pairs.row_lengths)
        order = permutation(placement.rows, self.seed, epoch, ROWS, window)
        return in_row_order(sources, targets, placement, order)

    def _sample(
        self, chosen: Int[np.ndarray, " P"], sources: TokenTable, targets: TokenTable, epoch: int, window: int
    ) -> tuple[TokenTable, TokenTable]:
        """Draw subwords for both sides of the chosen pairs, except where these would be too long for a row."""
        new_sources = self._draw(self.pairs.texts.sources, chosen, epoch, window, SOURCE_SUBWORDS)
        new_targets = self._draw(self.pairs.texts.targets, chosen, epoch, window, TARGET_SUBWORDS)
        is_short = fits(new_sources, new_targets, self.pairs.row_lengths)
        return choose(is_short, new_sources, sources.compact()), choose(is_short, new_targets, targets.compact())

    def _draw(
        self, sentences: Sequence[str], chosen: Int[np.ndarray, " P"], epoch: int, window: int, use: int
    ) -> TokenTable:
        seed = int(random_bits(1, self.seed, epoch, use, window)[0] >> np.uint64(33))
        segmentations = self._segmentations.get(use)
        if segmentations is None:
            segmentations = Segmentations(self.tokenizer, [sentences[i] for i in chosen.tolist()])
            chosen = np.arange(len(chosen))
        return segmentations.draw(chosen, self.config.subword_sampling, seed).compact()
