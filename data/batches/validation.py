"""Held-out pairs as batches, for the validation loss."""

import numpy as np

from common.errors import UserError
from common.text import in_brief
from data.batches.encoded_pairs import MAX_ROWS
from data.batches.packing import Batch, fill, join_rows, place, slice_rows
from data.batches.token_table import encode
from data.config import DataConfig
from data.pairs import Pairs
from data.tokenizer import Tokenizer


def validation_batches(
    pairs: Pairs, tokenizer: Tokenizer, config: DataConfig, row_lengths: tuple[int, int]
) -> list[Batch]:
    """Every held-out pair, packed once. If one is too long for (S, T), all rows grow to the next multiple that fits.

    UserError if one is so long that the batches could exceed the model's memory.
    """
    sources, targets = encode(tokenizer, pairs.sources), encode(tokenizer, pairs.targets)
    lengths = np.maximum(sources.length, targets.length)
    if lengths.max() > MAX_ROWS * config.row_length:
        pair = int(lengths.argmax())
        raise UserError(
            f"data.valid has a pair of {lengths[pair]} tokens, above {MAX_ROWS} times data.row_length: cut it into "
            f'sentences, or take it out of the set; it begins "{in_brief(pairs.sources[pair], 40)}"'
        )
    sides = zip(row_lengths, (sources.length.max(), targets.length.max()), strict=True)
    source_capacity, target_capacity = (row * -(-int(longest) // row) for row, longest in sides)
    capacity = source_capacity, target_capacity
    placement = place(sources.length, targets.length, capacity)
    rows = fill(sources, targets, placement, capacity)
    starts = range(0, placement.rows, config.batch_rows)
    return [join_rows([slice_rows(rows, slice(i, i + config.batch_rows))], config.batch_rows) for i in starts]
