"""The batch of any training step, computed from nothing but (training pairs, tokenizer, data config, seed, step).

An epoch is a permutation of the pairs, each as often as its source's weight says, cut into windows. A window draws its
subwords, packs its pairs into rows and permutes the rows; the rows of an epoch's windows, one after the other, are cut
into batches.
"""

import contextlib
import hashlib
import itertools
import json
import queue
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from jaxtyping import Bool, Float, Int

from common.errors import UserError
from common.files import write_atomically
from common.text import in_brief
from data.batches.packing import (
    Batch,
    Packed,
    TokenTable,
    compact,
    empty_rows,
    fill,
    fill_rows,
    in_row_order,
    join_rows,
    place,
    row_lengths,
    slice_rows,
    take,
    token_table,
)
from data.config import DataConfig
from data.pairs import Pairs
from data.store.mmap_array import GrowingArray, on_disk
from data.store.sentences import blocks_of
from data.subword_sampling import Segmentations
from data.tokenizer import Tokenizer

ORDER, ROWS, SOURCE_SUBWORDS, TARGET_SUBWORDS, VISITS = range(5)  # what random bits are drawn for
MOST_ROWS = 16  # that a sentence may fill: what is longer is no sentence
MOST_KEPT = 2_000_000  # pairs whose segmentations are kept for later epochs: they take some 3 kB of disk each
ALGORITHM = 1  # raise it when the same inputs come to give other batches


def random_bits(count: int, seed: int, epoch: int, use: int, window: int = 0) -> np.ndarray:
    """``count`` uint64 from Philox, a stream of their own for each seed, epoch, use and window.

    NumPy promises these raw bits for ever, and not what the methods of ``Generator`` make of them.
    """
    key = np.array([seed, epoch], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array([0, 0, use, window], dtype=np.uint64)).random_raw(count)


def permutation(count: int, seed: int, epoch: int, use: int, window: int = 0) -> Int[np.ndarray, " count"]:
    return np.argsort(random_bits(count, seed, epoch, use, window), kind="stable")


def visits_in(epoch: int, weights: Float[np.ndarray, " P"], seed: int) -> Int[np.ndarray, " P"]:
    """How often an epoch has each pair: ``weights`` on average, and after any number of epochs less than one off.

    A pair's visits after e epochs are the whole part of weight · e + u, where u is drawn once for each pair.
    """
    u = (random_bits(len(weights), seed, 0, VISITS) >> np.uint64(44)) / 2**20  # few enough bits to add exactly to 1 · e
    before, after = np.floor(weights * epoch + u), np.floor(weights * (epoch + 1) + u)
    return (after - before).astype(np.int64)


class BatchStream:
    """All batches of a training run, by step (from 0). Safe to use from several threads.

    ``weights`` says how often an epoch has each pair (None: once). ``row_lengths`` is (S, T); ``pairs`` counts the
    training pairs; ``report`` the pairs that were too long. ``cache_path`` keeps the rows of the windows packed so far:
    losing it costs time and changes nothing.
    """

    def __init__(
        self,
        training: Pairs,
        tokenizer: Tokenizer,
        config: DataConfig,
        seed: int,
        cache_path: Path | None = None,
        weights: Float[np.ndarray, " P"] | None = None,
    ) -> None:
        self.tokenizer, self.config, self.seed = tokenizer, config, seed
        sources, targets = encode(tokenizer, training.sources), encode(tokenizer, training.targets)
        usual = usual_pairs(sources, targets, config.row_length)
        self.row_lengths = row_lengths(sources.length[usual], targets.length[usual], config.row_length)
        if config.subword_sampling > 0:
            self.row_lengths = sampled_row_lengths(training, usual, tokenizer, config)
        kept = fits(sources, targets, self.row_lengths)
        if not kept.any():
            raise UserError(f"no training pair fits a row of data.row_length={config.row_length} tokens; raise it")
        self.training = training.keep(kept)
        self.weights = None if weights is None else weights[kept]
        self.sources, self.targets = keep(sources, kept), keep(targets, kept)
        self.pairs = len(self.training)
        self.report = {"over_long": len(training) - self.pairs}
        self.fingerprint = fingerprint(self.training, tokenizer, config, seed, self.weights)
        self._segmentations: dict[int, Segmentations] = {}
        if config.subword_sampling > 0 and self.pairs <= MOST_KEPT:
            self._segmentations[SOURCE_SUBWORDS] = Segmentations(tokenizer, self.training.sources)
            self._segmentations[TARGET_SUBWORDS] = Segmentations(tokenizer, self.training.targets)
        self._rows = RowCounts(cache_path, self.fingerprint)
        self._first_step = {0: 0}  # of each epoch, as far as known
        self._recent: dict[tuple[int, int], Packed] = {}
        self._epoch_order = -1, np.zeros(0, dtype=np.int64)
        self._sizes: dict[int, int] = {}  # visits in each epoch, as far as known
        self._lock = threading.Lock()  # held while a window is packed; steps in windows already packed never wait
        if self.visits(0) == 0:
            raise UserError("data.weights leave no pair for the first epoch; raise them")

    def batch(self, step: int, rows: slice = slice(None)) -> Batch:
        """The batch of update ``step + 1``: ``batch_rows`` rows, the last of them empty where an epoch ends.

        ``rows`` asks for some of them that follow each other; only their tokens are then read.
        """
        epoch, index = self.epoch_of(step)
        wanted = range(self.config.batch_rows)[rows]
        first, last = (index * self.config.batch_rows + row for row in (wanted.start, wanted.stop))
        parts = [empty_rows(0, self.row_lengths)]
        for window in range(self.windows(epoch)):
            if last <= 0:
                break
            count = self._rows_in(epoch, window)
            if first < count:
                parts.append(fill_rows(self._window(epoch, window), max(first, 0), min(last, count), self.row_lengths))
            first, last = first - count, last - count
        return join_rows(parts, len(wanted))

    def epoch_of(self, step: int) -> tuple[int, int]:
        """(epoch, index of the step within it), both from 0. Packs no window beyond the one that ``step`` needs."""
        epoch = max(e for e, first in list(self._first_step.items()) if first <= step)
        while not self._within(epoch, step - self._first_step[epoch]):
            self._first_step[epoch + 1] = self._first_step[epoch] + self.steps_in(epoch)
            epoch += 1
        return epoch, step - self._first_step[epoch]

    def windows(self, epoch: int) -> int:
        """Windows in an epoch."""
        return -(-self.visits(epoch) // self.config.window)

    def visits(self, epoch: int) -> int:
        """Pairs in an epoch, each counted as often as it comes."""
        if self.weights is None:
            return self.pairs
        if epoch not in self._sizes:
            self._sizes[epoch] = int(visits_in(epoch, self.weights, self.seed).sum())
        return self._sizes[epoch]

    def steps_in(self, epoch: int) -> int:
        """Batches in an epoch: its rows, divided by the rows of a batch, rounded up."""
        rows = sum(self._rows_in(epoch, window) for window in range(self.windows(epoch)))
        return -(-rows // self.config.batch_rows)

    def fill(self, epoch: int = 0, window: int = 0) -> tuple[float, float]:
        """The share of real tokens on each side of one window."""
        sources, targets, placement = self._window(epoch, window)
        source, target = (placement.rows * length for length in self.row_lengths)
        return int(sources.length.sum()) / source, int(targets.length.sum()) / target

    def _within(self, epoch: int, index: int) -> bool:
        rows = 0
        for window in range(self.windows(epoch)):
            rows += self._rows_in(epoch, window)
            if rows > index * self.config.batch_rows:
                return True
        return False

    def _rows_in(self, epoch: int, window: int) -> int:
        return self._rows.get((epoch, window)) or self._window(epoch, window).placement.rows

    def _window(self, epoch: int, window: int) -> Packed:
        """The pairs of a window; those of the last two windows are kept, because a batch may lie across both."""
        with self._lock:
            if (epoch, window) not in self._recent:
                packed = self._pack(epoch, window)
                self._rows.remember((epoch, window), packed.placement.rows)
                self._recent = dict([*self._recent.items(), ((epoch, window), packed)][-2:])
            return self._recent[epoch, window]

    def _pack(self, epoch: int, window: int) -> Packed:
        chosen = self._order(epoch)[window * self.config.window : (window + 1) * self.config.window]
        sources, targets = take(self.sources, chosen), take(self.targets, chosen)
        if self.config.subword_sampling > 0:
            sources, targets = self._sample(chosen, sources, targets, epoch, window)
        placement = place(sources.length, targets.length, self.row_lengths)
        order = permutation(placement.rows, self.seed, epoch, ROWS, window)
        return in_row_order(sources, targets, placement, order)

    def _order(self, epoch: int) -> Int[np.ndarray, " P"]:
        if self._epoch_order[0] != epoch:
            order = permutation(self.visits(epoch), self.seed, epoch, ORDER)
            if self.weights is not None:
                order = np.repeat(np.arange(self.pairs), visits_in(epoch, self.weights, self.seed))[order]
            self._epoch_order = epoch, order
        return self._epoch_order[1]

    def _sample(
        self, chosen: Int[np.ndarray, " P"], sources: TokenTable, targets: TokenTable, epoch: int, window: int
    ) -> tuple[TokenTable, TokenTable]:
        """Other subwords for both sides of the chosen pairs, except where these would be too long for a row."""
        new_sources = self._subwords(self.training.sources, chosen, epoch, window, SOURCE_SUBWORDS)
        new_targets = self._subwords(self.training.targets, chosen, epoch, window, TARGET_SUBWORDS)
        short = fits(new_sources, new_targets, self.row_lengths)
        return choose(short, new_sources, compact(sources)), choose(short, new_targets, compact(targets))

    def _subwords(
        self, sentences: Sequence[str], chosen: Int[np.ndarray, " P"], epoch: int, window: int, use: int
    ) -> TokenTable:
        seed = int(random_bits(1, self.seed, epoch, use, window)[0] >> np.uint64(33))
        alpha = self.config.subword_sampling
        if use in self._segmentations:
            return compact(self._segmentations[use].draw(chosen, alpha, seed))
        some = [sentences[i] for i in chosen.tolist()]
        return compact(Segmentations(self.tokenizer, some).draw(np.arange(len(some)), alpha, seed))


class RowCounts(dict[tuple[int, int], int]):
    """Rows of each (epoch, window) packed so far, kept in a file that is only believed when its checksum is right."""

    def __init__(self, path: Path | None, fingerprint: str) -> None:
        super().__init__()
        self.path, self.key = path, f"{fingerprint} {ALGORITHM} {sentencepiece.__version__}"
        try:
            saved = json.loads(path.read_text()) if path else {"rows": []}
            if path is None or saved["check"] == self.check(saved["rows"]):
                self.update({(epoch, window): rows for epoch, window, rows in saved["rows"]})
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass  # no cache, or half of one: the counts are found again

    def remember(self, window: tuple[int, int], rows: int) -> None:
        if self.get(window) == rows:
            return
        self[window] = rows
        if self.path and self.path.parent.exists():  # a run whose disk is gone does not begin another in its place
            table = [[*key, rows] for key, rows in sorted(self.items())]
            with contextlib.suppress(UserError):  # a folder that cannot be written to: the cache is only a cache
                write_atomically(self.path, json.dumps({"check": self.check(table), "rows": table}) + "\n")

    def check(self, rows: Any) -> str:
        return hashlib.sha256(f"{self.key} {json.dumps(rows)}".encode()).hexdigest()


def encode(tokenizer: Tokenizer, sentences: Sequence[str]) -> TokenTable:
    """The tokens of all sentences, mapped."""
    flat, start, length = GrowingArray(np.int32), GrowingArray(np.int64), GrowingArray(np.int64)
    tokens = 0
    for block in blocks_of(sentences):
        table = token_table(tokenizer.encode(block))
        flat.append(table.flat)
        start.append(tokens + table.start)
        length.append(table.length)
        tokens += len(table.flat)
    return TokenTable(flat.mapped(), start.mapped(), length.mapped())


def keep(table: TokenTable, kept: Bool[np.ndarray, " P"]) -> TokenTable:
    """The sentences for which ``kept`` holds, mapped; the flat array is shared."""
    return TokenTable(table.flat, on_disk(table.start[kept]), on_disk(table.length[kept]))


def usual_pairs(sources: TokenTable, targets: TokenTable, row_length: int) -> Int[np.ndarray, " P"]:
    """The pairs that are sentences: a line of a million letters, which is dropped, must not shape the others' rows."""
    return np.flatnonzero(np.maximum(sources.length, targets.length) <= MOST_ROWS * row_length)


def sampled_row_lengths(
    training: Pairs, usual: Int[np.ndarray, " P"], tokenizer: Tokenizer, config: DataConfig
) -> tuple[int, int]:
    """(S, T) in the ratio of one draw for some 20,000 pairs, since random subwords lengthen one language more."""
    some = training.take(usual[:: 1 + len(usual) // 20_000].tolist())
    sources, targets = (
        Segmentations(tokenizer, side).draw(np.arange(len(some)), config.subword_sampling, seed=0)
        for side in (some.sources, some.targets)
    )
    return row_lengths(sources.length, targets.length, config.row_length)


def fits(sources: TokenTable, targets: TokenTable, capacity: tuple[int, int]) -> Bool[np.ndarray, " P"]:
    return (sources.length <= capacity[0]) & (targets.length <= capacity[1])


def choose(first: Bool[np.ndarray, " P"], some: TokenTable, others: TokenTable) -> TokenTable:
    """Each sentence from ``some`` where ``first`` holds, else from ``others``."""
    return TokenTable(
        np.concatenate([some.flat, others.flat]),
        np.where(first, some.start, others.start + len(some.flat)),
        np.where(first, some.length, others.length),
    )


def fingerprint(
    training: Pairs, tokenizer: Tokenizer, config: DataConfig, seed: int, weights: Float[np.ndarray, " P"] | None
) -> str:
    """SHA-256 of all that the batches depend on."""
    settings = [ALGORITHM, seed, config.row_length, config.batch_rows, config.window, config.subword_sampling]
    digest = hashlib.sha256(json.dumps(settings).encode() + tokenizer.model)
    for block in blocks_of(zip(training.sources, training.targets, strict=True)):
        digest.update("".join(f"\n{source}\t{target}" for source, target in block).encode())
    if weights is not None:
        digest.update(weights.tobytes())
    return digest.hexdigest()


def validation_batches(
    pairs: Pairs, tokenizer: Tokenizer, config: DataConfig, row_lengths: tuple[int, int]
) -> list[Batch]:
    """Every held-out pair, packed once. If one is too long for (S, T), all rows grow to the next multiple that fits.

    UserError if one is so long that the model's memory would not grow with them.
    """
    sources, targets = encode(tokenizer, pairs.sources), encode(tokenizer, pairs.targets)
    refuse_no_sentence(pairs, np.maximum(sources.length, targets.length), MOST_ROWS * config.row_length)
    longest = int(sources.length.max()), int(targets.length.max())
    capacity = tuple(row * -(-long // row) for row, long in zip(row_lengths, longest, strict=True))
    placement = place(sources.length, targets.length, (capacity[0], capacity[1]))
    rows = fill(sources, targets, placement, (capacity[0], capacity[1]))
    starts = range(0, placement.rows, config.batch_rows)
    return [join_rows([slice_rows(rows, slice(i, i + config.batch_rows))], config.batch_rows) for i in starts]


def refuse_no_sentence(pairs: Pairs, lengths: Int[np.ndarray, " P"], most: int) -> None:
    if lengths.max() > most:
        pair = int(lengths.argmax())
        raise UserError(
            f"data.valid has a pair of {lengths[pair]} tokens, above {MOST_ROWS} times data.row_length: cut it into "
            f'sentences, or take it out of the set; it begins "{in_brief(pairs.sources[pair], 40)}"'
        )


def prefetch(
    stream: BatchStream, first_step: int, depth: int, rows: slice = slice(None)
) -> Generator[Batch, None, None]:
    """The batches from ``first_step`` on, or ``rows`` of each, up to ``depth`` made ahead by a thread.

    The thread's errors are raised here.
    """
    ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=depth)
    closed = threading.Event()

    def hand_over(item: Batch | BaseException) -> None:
        while not closed.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                pass

    def work() -> None:
        try:
            for step in itertools.count(first_step):
                if closed.is_set():
                    return
                hand_over(stream.batch(step, rows))
        except BaseException as error:
            hand_over(error)

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        closed.set()
        thread.join()
