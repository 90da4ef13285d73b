"""The batch of any training step, computed only from (training pairs, tokenizer, data config, seed, step).

An epoch is a permutation of its visits to the pairs, cut into windows. Each window draws its subwords, packs its pairs
into rows and permutes the rows. The concatenated rows of an epoch's windows are cut into batches.
"""

import copy
import itertools
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from common.errors import UserError
from common.text import in_brief
from data.batches.encoded import MAX_ROWS, EncodedPairs, fingerprint, in_all_directions
from data.batches.packing import Batch, Capacity, fill_rows, in_row_order, join_rows, place
from data.batches.windows import Windows
from data.config import DataConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, encode

Item = TypeVar("Item")

MOST_VISITS = 5e8  # each takes about 16 bytes


@dataclass(frozen=True)
class Start:
    """Where batches start: the batch after update ``step`` starts with this row of this epoch, both counted from 0."""

    step: int = 0
    epoch: int = 0
    row: int = 0


class BatchStream:
    """All batches of a training run, by step (from 0). Thread-safe.

    ``row_lengths`` is (S, T); ``fingerprint`` identifies everything that the batches depend on.
    """

    def __init__(self, encoded: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int) -> None:
        self.encoded, self.tokenizer, self.config = encoded, tokenizer, config
        self.row_lengths = encoded.row_lengths
        self.fingerprint = fingerprint(encoded, tokenizer, config, seed)
        if encoded.weights is not None and (visits := float(encoded.weights.sum())) > MOST_VISITS:
            raise UserError(f"data.weights ask for {visits:.3g} visits to pairs in an epoch; at most {MOST_VISITS:.0g}")
        self.windows = Windows(encoded, tokenizer, config, seed)
        self.start, self._first_step = Start(), {0: 0}  # of the epochs known so far
        if self.windows.visits(0) == 0:
            raise UserError("data.weights leave no pair for the first epoch; raise them")

    def starting_at(self, start: Start) -> "BatchStream":
        """The batches of a run that used other batches for its first ``start.step`` updates."""
        stream = copy.copy(self)
        stream.start, stream._first_step = start, {start.epoch: start.step}
        return stream

    def batch(self, step: int, rows: slice = slice(None)) -> Batch:
        """The batch of update ``step + 1``: ``batch_rows`` rows; at the end of an epoch, the last ones may be empty.

        ``rows`` selects consecutive rows; only their tokens are read.
        """
        epoch, index = self.epoch_of(step)
        wanted = range(self.config.batch_rows)[rows]
        first, last = (self.row_of(epoch, index) + row for row in (wanted.start, wanted.stop))
        parts = list[Batch]()
        for window in range(self.windows.count(epoch)):
            if last <= 0:
                break
            count = self.windows.rows(epoch, window)
            if first < count:
                packed = self.windows.packed(epoch, window)
                parts.append(fill_rows(packed, max(first, 0), min(last, count), self.row_lengths))
            first, last = first - count, last - count
        return join_rows(parts, len(wanted), self.row_lengths)

    def epoch_of(self, step: int) -> tuple[int, int]:
        """(epoch, index of the step in it), both from 0. Packs no windows after the one that contains ``step``."""
        epoch = max(e for e, first in list(self._first_step.items()) if first <= step)
        while not self._contains(epoch, step - self._first_step[epoch]):
            self._first_step[epoch + 1] = self._first_step[epoch] + self.steps_in(epoch)
            epoch += 1
        return epoch, step - self._first_step[epoch]

    def _contains(self, epoch: int, index: int) -> bool:
        counts = (self.windows.rows(epoch, window) for window in range(self.windows.count(epoch)))
        return any(rows > self.row_of(epoch, index) for rows in itertools.accumulate(counts))

    def row_of(self, epoch: int, index: int) -> int:
        """The first row of a batch, both counted within the epoch."""
        return index * self.config.batch_rows + self.start.row * (epoch == self.start.epoch)

    def steps_in(self, epoch: int) -> int:
        """Number of batches in an epoch: its rows divided by the rows of a batch, rounded up."""
        rows = sum(self.windows.rows(epoch, window) for window in range(self.windows.count(epoch)))
        return -(-(rows - self.row_of(epoch, 0)) // self.config.batch_rows)

    def expected_steps(self, row: int = 0) -> int:
        """Number of batches in an epoch from a row on, estimated from its first window; packs no other window."""
        visits = self.windows.visits(0)
        rows = -(-self.windows.rows(0, 0) * visits // min(visits, self.config.window))
        return -(-(rows - row) // self.config.batch_rows)

    def fill(self) -> tuple[float, float]:
        """The share of real tokens on each side of the first window."""
        sources, targets, placement = self.windows.packed(0, 0)
        source, target = (placement.rows * length for length in self.row_lengths)
        return int(sources.length.sum()) / source, int(targets.length.sum()) / target


def prefetch(
    stream: BatchStream, first_step: int, depth: int, rows: slice, prepare: Callable[[int, Batch], Item]
) -> Generator[Item, None, None]:
    """Yield ``prepare(step, rows of its batch)`` from ``first_step`` on; a thread works ``depth`` steps ahead."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    steps = itertools.count(first_step)

    def build(step: int) -> Item:
        return prepare(step, stream.batch(step, rows))

    ready = deque(thread.submit(build, next(steps)) for _ in range(depth))
    try:
        while True:
            prepared = ready.popleft().result()
            ready.append(thread.submit(build, next(steps)))
            yield prepared
    finally:
        thread.shutdown(cancel_futures=True)


def validation_batches(pairs: Pairs, tokenizer: Tokenizer, config: DataConfig, row_lengths: Capacity) -> list[Batch]:
    """All held-out pairs, packed once. If one is too long for (S, T), all rows grow to the next multiple that fits.

    UserError if one is so long that the batches might not fit into memory.
    """
    pairs, tags = in_all_directions(pairs, tokenizer, config)
    sources, targets = encode(tokenizer, pairs.sources, tags), encode(tokenizer, pairs.targets)
    lengths = np.maximum(sources.length, targets.length)
    if lengths.max() > MAX_ROWS * config.row_length:
        pair = int(lengths.argmax())
        problem = f"data.valid has a pair of {lengths[pair]} tokens, above {MAX_ROWS} times data.row_length"
        beginning = in_brief(pairs.sources[pair], 40)
        raise UserError(f'{problem}: cut it into sentences, or take it out of the set; it begins "{beginning}"')
    sides = zip(row_lengths, (sources.length.max(), targets.length.max()), strict=True)
    source, target = (row * -(-int(longest) // row) for row, longest in sides)
    placement = place(sources.length, targets.length, (source, target))
    packed = in_row_order(sources, targets, placement, np.arange(placement.rows))
    starts = range(0, placement.rows, config.batch_rows)
    return [fill_rows(packed, start, start + config.batch_rows, (source, target)) for start in starts]
