"""The training pairs as tokens, which of them come when, and in which rows.

An epoch is a permutation of its visits to the pairs, cut into windows, which are sampled, packed and permuted as a
whole. Random numbers are Philox's raw bits and argsort, because NumPy does not promise stable ``Generator`` methods.

P sentence pair · S source position · T target position.
"""

import contextlib
import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from jaxtyping import Float, Int, Int32, UInt64

from common.cache import Arrays, keep
from common.disk_cache import load_or_compute
from common.errors import UserError
from common.files import sha256, write_atomically
from data.batches.packing import Packed, in_row_order, place, row_lengths
from data.config import DataConfig
from data.pairs import Pairs, concatenate
from data.sentences import TokenTable, choose, fits, in_blocks, move_to_disk, with_first
from data.tokens.subword_sampling import Segmentations
from data.tokens.tokenizer import Tokenizer, encode

ALGORITHM = 1  # raise it when the same inputs give other batches
MAX_ROWS = 16  # a line that would fill more rows is not a sentence
ORDER, ROWS, SOURCE_SUBWORDS, TARGET_SUBWORDS, VISITS = range(5)  # the uses of random bits
MAX_CACHED_PAIRS = 2_000_000  # in larger corpora segmentations are not cached: they take some 3 kB of disk a pair

Tags = Int32[np.ndarray, " P"] | None  # the first token of each source; None: its text begins at once
Weights = Float[np.ndarray, " P"] | None  # average visits to each pair in an epoch; None: all 1


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs that fit a row of ``row_lengths`` (S, T), their likeliest tokens, and their weights (None: all 1).

    With ``data.direction=both``, each pair of the corpus comes in both directions, and ``tags`` has the first token of
    each source (None: there is one direction).
    """

    texts: Pairs
    sources: TokenTable
    targets: TokenTable
    weights: Weights
    tags: Tags
    row_lengths: tuple[int, int]

    def __len__(self) -> int:
        return len(self.texts)

    def arrays(self, corpus: Pairs) -> Arrays:
        """The pairs as arrays; their texts only if they are not those of the corpus."""
        arrays = {
            "row_lengths": np.array(self.row_lengths),
            **{f"source_{name}": array for name, array in self.sources._asdict().items()},
            **{f"target_{name}": array for name, array in self.targets._asdict().items()},
        }
        optional = {"weights": self.weights, "tags": self.tags}
        arrays |= {name: array for name, array in optional.items() if array is not None}
        return arrays if self.texts is corpus else arrays | self.texts.arrays("fitting")

    @classmethod
    def mapped(cls, arrays: Arrays, corpus: Pairs) -> "EncodedPairs":
        """The pairs of ``arrays``."""
        source, target = arrays["row_lengths"].tolist()
        return cls(
            Pairs.mapped("fitting", arrays) if "fitting_source_text" in arrays else corpus,
            TokenTable(*(arrays[f"source_{name}"] for name in TokenTable._fields)),
            TokenTable(*(arrays[f"target_{name}"] for name in TokenTable._fields)),
            arrays.get("weights"),
            arrays.get("tags"),
            (source, target),
        )


def load_encoded(
    corpus: Pairs, tokenizer: Tokenizer, config: DataConfig, seed: int, weights: Weights, corpus_key: str | None
) -> tuple[EncodedPairs, str]:
    """``encode_pairs`` and the ``fingerprint`` of the result, from the cache if a corpus of that key is known there."""
    if corpus_key is None:
        pairs = encode_pairs(corpus, tokenizer, config, weights)
        return pairs, fingerprint(pairs, tokenizer, config, seed)
    settings = [sha256(tokenizer.model), config.row_length, config.subword_sampling, config.direction]
    key = sha256(json.dumps([corpus_key, *settings]))
    arrays = keep(f"tokens-{key}", lambda: encode_pairs(corpus, tokenizer, config, weights).arrays(corpus))
    pairs = EncodedPairs.mapped(arrays, corpus)
    batches = sha256(json.dumps([key, seed, config.batch_rows, config.window, ALGORITHM]))
    found = load_or_compute(f"batches-{batches}", lambda: fingerprint(pairs, tokenizer, config, seed).encode())
    return pairs, found.decode()


def encode_pairs(corpus: Pairs, tokenizer: Tokenizer, config: DataConfig, weights: Weights) -> EncodedPairs:
    """Encode the pairs, choose (S, T), and drop pairs that are too long; UserError if none is left."""
    pairs, tags = in_all_directions(corpus, tokenizer, config)
    weights = None if weights is None else np.tile(weights, len(config.directions))
    sources, targets = encode(tokenizer, pairs.sources, tags), encode(tokenizer, pairs.targets)
    # A line of a million letters, which will be dropped, must not shape the rows of the others.
    usual = np.flatnonzero(np.maximum(sources.length, targets.length) <= MAX_ROWS * config.row_length)
    capacity = row_lengths(sources.length[usual], targets.length[usual], config.row_length)
    if config.subword_sampling > 0:
        # Random subwords lengthen one language more: (S, T) has the ratio of one draw for some 20,000 pairs.
        some = pairs.take(usual[:: 1 + len(usual) // 20_000].tolist())
        source, target = (
            Segmentations(tokenizer, side).draw(np.arange(len(some)), config.subword_sampling, seed=0).length
            for side in (some.sources, some.targets)
        )
        capacity = row_lengths(source + (tags is not None), target, config.row_length)
    is_short = fits(sources, targets, capacity)
    if not is_short.any():
        raise UserError(f"no training pair fits a row of data.row_length={config.row_length} tokens; raise it")
    sources, targets = (
        TokenTable(table.flat, move_to_disk(table.start[is_short]), move_to_disk(table.length[is_short]))
        for table in (sources, targets)
    )
    weights, tags = (None if each is None else each[is_short] for each in (weights, tags))
    return EncodedPairs(pairs.select(is_short), sources, targets, weights, tags, capacity)


def in_all_directions(pairs: Pairs, tokenizer: Tokenizer, config: DataConfig) -> tuple[Pairs, Tags]:
    """The pairs in every direction that is trained, one direction after the other, and the tags of their sources."""
    if len(config.directions) == 1:
        return pairs, None
    tags = [tokenizer.tag(direction.target) for direction in config.directions]
    return concatenate([pairs, pairs.reversed()]), np.repeat(np.concatenate(tags).astype(np.int32), len(pairs))


def fingerprint(pairs: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int) -> str:
    """SHA-256 of everything that the batches depend on."""
    settings = [ALGORITHM, seed, config.row_length, config.batch_rows, config.window, config.subword_sampling]
    digest = hashlib.sha256(json.dumps(settings).encode() + tokenizer.model)
    for block in in_blocks(zip(pairs.texts.sources, pairs.texts.targets, strict=True)):
        digest.update("".join(f"\n{source}\t{target}" for source, target in block).encode())
    if pairs.weights is not None:
        digest.update(pairs.weights.tobytes())
    if pairs.tags is not None:
        digest.update(pairs.tags.tobytes())
    return digest.hexdigest()


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


class RowCounts(dict[tuple[int, int], int]):
    """Rows by (epoch, window), read from and written to a file; a file whose checksum is wrong is ignored.

    While ``is_held``, nothing is written.
    """

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        super().__init__()
        self.is_held = False
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
        self.write()

    def write(self) -> None:
        if self.is_held or self.path is None or not self.path.parent.exists():
            return  # a run directory whose disk is gone must not be created anew
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
        self.row_counts = row_counts
        self._visits: dict[int, int] = {}
        self._last_order = -1, np.zeros(0, dtype=np.int64)
        self._recent: dict[tuple[int, int], Packed] = {}
        self._lock = threading.Lock()  # held while a window is packed; the row counts are read without it
        self._segmentations: dict[int, Segmentations] = {}
        if config.subword_sampling > 0 and len(pairs) <= MAX_CACHED_PAIRS:
            self._segmentations[SOURCE_SUBWORDS] = Segmentations(tokenizer, pairs.texts.sources)
            self._segmentations[TARGET_SUBWORDS] = Segmentations(tokenizer, pairs.texts.targets)

    def visits(self, epoch: int) -> int:
        """Pairs in an epoch, counted at every visit."""
        if self.pairs.weights is None:
            return len(self.pairs)
        if epoch not in self._visits:
            self._visits[epoch] = int(visits_in(epoch, self.pairs.weights, self.seed).sum())
        return self._visits[epoch]

    def count(self, epoch: int) -> int:
        return -(-self.visits(epoch) // self.config.window)

    def rows(self, epoch: int, window: int) -> int:
        return self.row_counts.get((epoch, window)) or self.packed(epoch, window).placement.rows

    def packed(self, epoch: int, window: int) -> Packed:
        """The pairs of a window. The last two windows are cached, because a batch may span two."""
        with self._lock:
            if (epoch, window) not in self._recent:
                packed = self._pack(epoch, window)
                self.row_counts.add((epoch, window), packed.placement.rows)
                self._recent = dict([*self._recent.items(), ((epoch, window), packed)][-2:])
            return self._recent[epoch, window]

    def _order(self, epoch: int) -> Int[np.ndarray, " visits"]:
        """The pair of each visit in an epoch."""
        if self._last_order[0] != epoch:
            order = permutation(self.visits(epoch), self.seed, epoch, ORDER)
            if self.pairs.weights is not None:
                order = np.repeat(np.arange(len(self.pairs)), visits_in(epoch, self.pairs.weights, self.seed))[order]
            self._last_order = epoch, order
        return self._last_order[1]

    def _pack(self, epoch: int, window: int) -> Packed:
        chosen = self._order(epoch)[window * self.config.window : (window + 1) * self.config.window]
        sources, targets = self.pairs.sources.take(chosen), self.pairs.targets.take(chosen)
        if self.config.subword_sampling > 0:
            new_sources = self._tagged(self._draw(chosen, epoch, window, SOURCE_SUBWORDS), chosen)
            new_targets = self._draw(chosen, epoch, window, TARGET_SUBWORDS)
            is_short = fits(new_sources, new_targets, self.pairs.row_lengths)
            sources = choose(is_short, new_sources, sources.compact())
            targets = choose(is_short, new_targets, targets.compact())
        placement = place(sources.length, targets.length, self.pairs.row_lengths)
        order = permutation(placement.rows, self.seed, epoch, ROWS, window)
        return in_row_order(sources, targets, placement, order)

    def _tagged(self, sources: TokenTable, chosen: Int[np.ndarray, " P"]) -> TokenTable:
        return sources if self.pairs.tags is None else with_first(sources, self.pairs.tags[chosen])

    def _draw(self, chosen: Int[np.ndarray, " P"], epoch: int, window: int, use: int) -> TokenTable:
        sentences = self.pairs.texts.sources if use == SOURCE_SUBWORDS else self.pairs.texts.targets
        seed = int(random_bits(1, self.seed, epoch, use, window)[0] >> np.uint64(33))
        segmentations = self._segmentations.get(use)
        if segmentations is None:
            segmentations = Segmentations(self.tokenizer, [sentences[i] for i in chosen.tolist()])
            chosen = np.arange(len(chosen))
        return segmentations.draw(chosen, self.config.subword_sampling, seed).compact()
