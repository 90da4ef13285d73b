"""Pack several sentence pairs into each row, and build the arrays that the model reads.

B batch row · S source position · T target position · P sentence pair.

A pair takes one segment of the same row on both sides. Sentences have few distinct lengths, so packing works on a
histogram with cells (source length, target length). It composes one row from the cells, greedily and largest first,
and repeats that row as often as the histogram allows (after the histogram packing of Krell et al. 2021,
https://arxiv.org/abs/2107.02027, extended to two lengths). The cost grows with the number of cells, not of pairs.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from common.special_tokens import BOS
from data.tokens.table import TokenTable

Indices = Int[np.ndarray, " P"]  # a number for each pair
Capacity = tuple[int, int]  # (S, T)


class Batch(NamedTuple):
    """Packed rows, all int32: NumPy on the host, jax on the device.

    Segments are numbered from 1 in each row; 0 is padding. Positions restart with each segment. ``target_inputs`` is
    BOS and the tokens, ``target_labels`` the tokens and EOS: targets are shifted here and nowhere else.
    """

    source_tokens: Int32[Any, "B S"]
    source_segments: Int32[Any, "B S"]
    source_positions: Int32[Any, "B S"]
    target_inputs: Int32[Any, "B T"]
    target_labels: Int32[Any, "B T"]
    target_segments: Int32[Any, "B T"]
    target_positions: Int32[Any, "B T"]


class Placement(NamedTuple):
    """The number of rows, and each pair's row, its segment number there, and its offset on each side."""

    rows: int
    row: Indices
    segment: Indices
    source_offset: Indices
    target_offset: Indices


class Packed(NamedTuple):
    """Placed pairs, in the order of the rows."""

    sources: TokenTable
    targets: TokenTable
    placement: Placement


def row_lengths(source_length: Indices, target_length: Indices, row_length: int) -> Capacity:
    """(S, T): ``row_length`` for the side with more tokens, and the other in proportion, so that both sides fill up."""
    source, target = int(source_length.sum()), int(target_length.sum())
    longer = max(source, target, 1)
    return max(1, round(row_length * source / longer)), max(1, round(row_length * target / longer))


def place(source_length: Indices, target_length: Indices, capacity: Capacity) -> Placement:
    """Find a place for every pair. Lengths include EOS and must not exceed the capacity (S, T) of a row."""
    both = np.stack([source_length, target_length], axis=1)
    lengths, cell, count = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    waiting = np.argsort(cell, kind="stable")  # the pairs, cell by cell
    next_of = np.cumsum(count) - count  # the index in ``waiting`` of each cell's next pair
    placed = np.zeros((4, len(source_length)), dtype=np.int64)
    rows = 0
    while count.any():
        chosen = compose_row(lengths, count, capacity)
        copies = int((count[chosen] // np.bincount(chosen, minlength=len(count))[chosen]).min())
        offset = np.zeros(2, dtype=np.int64)
        for segment, c in enumerate(chosen, start=1):
            pairs = waiting[next_of[c] : next_of[c] + copies]
            placed[0, pairs] = np.arange(rows, rows + copies)
            placed[1:, pairs] = np.array([segment, *offset])[:, None]
            next_of[c] += copies
            count[c] -= copies
            offset += lengths[c]
        rows += copies
    return Placement(rows, *placed)


def compose_row(
    lengths: Int[np.ndarray, "cells 2"], count: Int[np.ndarray, " cells"], capacity: Capacity
) -> Int[np.ndarray, " segments"]:
    """Choose the cells of one row: repeatedly the largest that fits, minus half of the imbalance between the sides.

    The factor of one half was measured: it fills 98 % of both sides of the Tatoeba corpus, compared with 93 % without
    the imbalance and 97.8 % with all of it.
    """
    cells = np.flatnonzero(count)
    share: Float[np.ndarray, "left 2"] = lengths[cells] / np.array(capacity)
    size, tilt = share.sum(axis=1), share[:, 0] - share[:, 1]
    room, left, row_tilt = np.array(capacity), count[cells], 0.0
    chosen: list[int] = []
    while True:
        fits: Bool[np.ndarray, " left"] = (lengths[cells, 0] <= room[0]) & (lengths[cells, 1] <= room[1]) & (left > 0)
        best = int(np.argmax(np.where(fits, size - 0.5 * np.abs(row_tilt + tilt), -np.inf)))
        if not fits[best]:
            return cells[np.array(chosen, dtype=np.int64)]
        chosen.append(best)
        room, row_tilt = room - lengths[cells[best]], row_tilt + tilt[best]
        left[best] -= 1


def in_row_order(
    sources: TokenTable, targets: TokenTable, placement: Placement, order: Int[np.ndarray, " rows"]
) -> Packed:
    """The placed pairs row by row, with the rows permuted: the new row i is the old row ``order[i]``."""
    row = np.argsort(order)[placement.row]
    pairs = np.argsort(row, kind="stable")
    ordered = Placement(placement.rows, row[pairs], *(array[pairs] for array in placement[2:]))
    return Packed(sources.take(pairs), targets.take(pairs), ordered)


def fill_rows(packed: Packed, first: int, last: int, capacity: Capacity) -> Batch:
    """The rows from ``first`` up to but not including ``last``; reads no tokens of other rows."""
    pairs = slice(*np.searchsorted(packed.placement.row, [first, last]))
    row, *places = (array[pairs] for array in packed.placement[1:])
    placement = Placement(last - first, row - first, *places)
    source = scatter(packed.sources.take(pairs), placement, placement.source_offset, capacity[0])
    labels, segments, positions = scatter(packed.targets.take(pairs), placement, placement.target_offset, capacity[1])
    inputs = np.where(segments == 0, labels, np.where(positions == 0, BOS, np.roll(labels, 1, axis=1)))
    return Batch(source[0], source[1], source[2], inputs, labels, segments, positions)


def scatter(table: TokenTable, placement: Placement, offset: Indices, width: int) -> Int32[np.ndarray, "3 B width"]:
    """Tokens, segments and positions of one side, all copied at once; 0, which is PAD, everywhere else."""
    position = np.arange(table.length.sum()) - np.repeat(np.cumsum(table.length) - table.length, table.length)
    place = np.repeat(placement.row * width + offset, table.length) + position
    rows = np.zeros((3, placement.rows * width), dtype=np.int32)
    rows[0, place] = table.flat[np.repeat(table.start, table.length) + position]
    rows[1, place] = np.repeat(placement.segment, table.length)
    rows[2, place] = position
    return rows.reshape(3, placement.rows, width)


def slice_rows(batch: Batch, rows: slice | Int[np.ndarray, " B"]) -> Batch:
    """Select rows of a batch, or reorder them."""
    return Batch(*(array[rows] for array in batch))


def join_rows(batches: list[Batch], rows: int, capacity: Capacity) -> Batch:
    """Concatenate batches and pad them with empty rows to ``rows``."""
    missing = rows - sum(len(batch.source_tokens) for batch in batches)
    source, target = (np.zeros((missing, length), dtype=np.int32) for length in capacity)
    padding = Batch(source, source, source, target, target, target, target)
    return Batch(*(np.concatenate(arrays) for arrays in zip(*batches, padding, strict=True)))
