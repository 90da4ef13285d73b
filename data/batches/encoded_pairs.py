"""The training pairs as tokens, without those that are too long for a row.

P sentence pair · S source position · T target position.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from common.errors import UserError
from data.batches.packing import row_lengths
from data.batches.token_table import TokenTable, encode, fits
from data.config import DataConfig
from data.pairs import Pairs
from data.store.mmap_array import move_to_disk
from data.store.sentences import in_blocks
from data.subword_sampling import Segmentations
from data.tokenizer import Tokenizer

ALGORITHM = 1  # raise it when the same inputs give other batches
MAX_ROWS = 16  # a line that would fill more rows is not a sentence


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs that fit a row of ``row_lengths`` (S, T), their likeliest tokens, and their weights (None: all 1)."""

    texts: Pairs
    sources: TokenTable
    targets: TokenTable
    weights: Float[np.ndarray, " P"] | None
    row_lengths: tuple[int, int]

    def __len__(self) -> int:
        return len(self.texts)


def encode_pairs(
    pairs: Pairs, tokenizer: Tokenizer, config: DataConfig, weights: Float[np.ndarray, " P"] | None
) -> EncodedPairs:
    """Encode the pairs, choose (S, T), and drop pairs that are too long; UserError if none is left."""
    sources, targets = encode(tokenizer, pairs.sources), encode(tokenizer, pairs.targets)
    # A line of a million letters, which will be dropped, must not shape the rows of the others.
    usual = np.flatnonzero(np.maximum(sources.length, targets.length) <= MAX_ROWS * config.row_length)
    capacity = row_lengths(sources.length[usual], targets.length[usual], config.row_length)
    if config.subword_sampling > 0:
        capacity = sampled_row_lengths(pairs, usual, tokenizer, config)
    is_short = fits(sources, targets, capacity)
    if not is_short.any():
        raise UserError(f"no training pair fits a row of data.row_length={config.row_length} tokens; raise it")
    sources, targets = (
        TokenTable(table.flat, move_to_disk(table.start[is_short]), move_to_disk(table.length[is_short]))
        for table in (sources, targets)
    )
    weights = None if weights is None else weights[is_short]
    return EncodedPairs(pairs.select(is_short), sources, targets, weights, capacity)


def sampled_row_lengths(
    pairs: Pairs, usual: Int[np.ndarray, " usual"], tokenizer: Tokenizer, config: DataConfig
) -> tuple[int, int]:
    """(S, T) in the ratio of one draw for some 20,000 pairs: random subwords lengthen one language more."""
    some = pairs.take(usual[:: 1 + len(usual) // 20_000].tolist())
    sources, targets = (
        Segmentations(tokenizer, side).draw(np.arange(len(some)), config.subword_sampling, seed=0)
        for side in (some.sources, some.targets)
    )
    return row_lengths(sources.length, targets.length, config.row_length)


def fingerprint(pairs: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int) -> str:
    """SHA-256 of everything that the batches depend on."""
    settings = [ALGORITHM, seed, config.row_length, config.batch_rows, config.window, config.subword_sampling]
    digest = hashlib.sha256(json.dumps(settings).encode() + tokenizer.model)
    for block in in_blocks(zip(pairs.texts.sources, pairs.texts.targets, strict=True)):
        digest.update("".join(f"\n{source}\t{target}" for source, target in block).encode())
    if pairs.weights is not None:
        digest.update(pairs.weights.tobytes())
    return digest.hexdigest()
