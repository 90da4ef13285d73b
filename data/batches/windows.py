"""The order of training pairs, and the rows that they are packed into.

An epoch is a permutation of its visits to the pairs, cut into windows. Each window is sampled, packed and permuted as a
whole. Randomness comes from raw Philox bits and argsort, because NumPy may change the results of ``Generator`` methods.

P sentence pair.
"""

import threading

import numpy as np
from jaxtyping import Float, Int, UInt64

from data.batches.encoded import EncodedPairs
from data.batches.packing import Packed, in_row_order, place
from data.capitals import in_sentence_case
from data.config import DataConfig
from data.noise import DRAWS, noised, uniform
from data.tokens.subword_sampling import Segmentations
from data.tokens.table import TokenTable, fits, replace_where, token_table, with_first
from data.tokens.tokenizer import Tokenizer

ORDER, ROWS, SOURCE_SUBWORDS, TARGET_SUBWORDS, VISITS, NOISE = range(6)  # the uses of random bits
MAX_CACHED_PAIRS = 2_000_000  # larger corpora do not cache segmentations, which take about 3 kB of disk per pair


def random_bits(count: int, seed: int, epoch: int, use: int, window: int = 0) -> UInt64[np.ndarray, " count"]:
    """Philox bits from an independent stream for each seed, epoch, use and window."""
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, 0, use, window], dtype=np.uint64)).random_raw(count)


def permutation(count: int, seed: int, epoch: int, use: int, window: int = 0) -> Int[np.ndarray, " count"]:
    return np.argsort(random_bits(count, seed, epoch, use, window), kind="stable")


def visits_in(epoch: int, weights: Float[np.ndarray, " P"], seed: int) -> Int[np.ndarray, " P"]:
    """How often an epoch visits each pair: on average its weight, and the total is always less than one visit off.

    The number of visits after e epochs is the integer part of weight · e + u, where u is drawn once for each pair.
    """
    u = (random_bits(len(weights), seed, 0, VISITS) >> np.uint64(44)) / 2**20  # few enough bits to add exactly to 1 · e
    before, after = np.floor(weights * epoch + u), np.floor(weights * (epoch + 1) + u)
    return (after - before).astype(np.int64)


class Windows:
    """The packed pairs of every (epoch, window). Thread-safe.

    ``row_counts`` has the row counts of known (epoch, window)s, so that finding a later step does not pack them again.
    """

    def __init__(self, pairs: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int) -> None:
        self.pairs, self.tokenizer, self.config, self.seed = pairs, tokenizer, config, seed
        self.row_counts: dict[tuple[int, int], int] = {}
        self._visits: dict[int, int] = {}
        self._last_order = -1, np.zeros(0, dtype=np.int64)
        self._recent: dict[tuple[int, int], Packed] = {}
        self._lock = threading.Lock()  # held while a window is packed; the row counts are read without it
        self._segmentations: dict[int, Segmentations] = {}
        if config.subword_sampling > 0 and len(pairs) <= MAX_CACHED_PAIRS:
            self._segmentations[SOURCE_SUBWORDS] = Segmentations(tokenizer, pairs.texts.sources)
            self._segmentations[TARGET_SUBWORDS] = Segmentations(tokenizer, pairs.texts.targets)

    def visits(self, epoch: int) -> int:
        """Number of visits to pairs in an epoch."""
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
                self.row_counts[epoch, window] = packed.placement.rows
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
            new_sources = self._draw(chosen, epoch, window, SOURCE_SUBWORDS)
            if self.pairs.tags is not None:
                new_sources = with_first(new_sources, self.pairs.tags[chosen])
            new_targets = self._draw(chosen, epoch, window, TARGET_SUBWORDS)
            is_short = fits(new_sources, new_targets, self.pairs.row_lengths)
            sources = replace_where(is_short, new_sources.take(is_short), sources.compact())
            targets = replace_where(is_short, new_targets.take(is_short), targets.compact())
        if self.config.noise > 0:
            sources = self._with_noise(sources.compact(), chosen, epoch, window)
        placement = place(sources.length, targets.length, self.pairs.row_lengths)
        order = permutation(placement.rows, self.seed, epoch, ROWS, window)
        return in_row_order(sources, targets, placement, order)

    def _with_noise(self, sources: TokenTable, chosen: Int[np.ndarray, " P"], epoch: int, window: int) -> TokenTable:
        """The sources, with noise in a share of them; sources that would no longer fit into a row stay as they are."""
        draws = uniform(random_bits((1 + DRAWS) * len(chosen), self.seed, epoch, NOISE, window)).reshape(-1, 1 + DRAWS)
        is_noised = draws[:, 0] < self.config.noise
        texts = (self.pairs.texts.sources[i] for i in chosen[is_noised].tolist())
        noisy = [in_sentence_case(noised(text, draw)) for text, draw in zip(texts, draws[is_noised, 1:], strict=True)]
        table = token_table(self.tokenizer.encode(noisy))
        if self.pairs.tags is not None:
            table = with_first(table, self.pairs.tags[chosen[is_noised]])
        is_short = table.length <= self.pairs.row_lengths[0]
        is_noised[is_noised] = is_short
        return replace_where(is_noised, table.take(is_short), sources)

    def _draw(self, chosen: Int[np.ndarray, " P"], epoch: int, window: int, use: int) -> TokenTable:
        sentences = self.pairs.texts.sources if use == SOURCE_SUBWORDS else self.pairs.texts.targets
        seed = int(random_bits(1, self.seed, epoch, use, window)[0] >> np.uint64(33))
        segmentations = self._segmentations.get(use)
        if segmentations is None:
            segmentations = Segmentations(self.tokenizer, [sentences[i] for i in chosen.tolist()])
            chosen = np.arange(len(chosen))
        return segmentations.draw(chosen, self.config.subword_sampling, seed).compact()
