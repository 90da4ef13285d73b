"""Count operations in the matrix products of training steps and decoding: the same work for every engine.

B batch row · S source position · T target position · K beam · V vocabulary
"""

import math
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from flax import nnx
from jaxtyping import Int32

from common.special_tokens import BOS, EOS
from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import structure
from training.config import TrainingConfig

MATRICES = {"DN", "DG", "ND", "NHH", "DF", "FD", "VD", "DE"}  # every token is multiplied by these parameters
OF_SOURCES = re.compile(r"^encoder|cross_attention/(key|value)/")  # paths of those that multiply source tokens


@cache
def list_parameters(model: ModelConfig, vocab_size: int) -> dict[str, Any]:
    """Return every parameter by its path, without values but with its shape and axes (model/sharding.py)."""
    return {"/".join(map(str, path)): leaf for path, leaf in nnx.to_flat_state(structure(model, vocab_size)[1])}


def source_products(model: ModelConfig, vocab_size: int, sources: int) -> int:
    """Return the multiplications for a row of source tokens: the encoder, and the decoder's keys and values."""
    return sources * _matrix_sizes(model, vocab_size)[0] + model.encoder_layers * _attention(model, sources**2)


def target_products(model: ModelConfig, vocab_size: int, targets: int, pairs: int) -> int:
    """Return the multiplications for target tokens: the decoder, ``pairs`` of query and key per layer, and logits."""
    return targets * _matrix_sizes(model, vocab_size)[1] + model.decoder_layers * _attention(model, pairs)


@cache
def _matrix_sizes(model: ModelConfig, vocab_size: int) -> tuple[int, int]:
    """Return the sizes of all matrices that source tokens are multiplied by, and those of target tokens."""
    sizes = [0, 0]
    for path, leaf in list_parameters(model, vocab_size).items():
        if leaf.get_metadata("axes") in MATRICES:
            sizes[0 if OF_SOURCES.search(path) else 1] += math.prod(leaf.shape)
    return sizes[0], sizes[1]


def _attention(model: ModelConfig, pairs: int) -> int:
    """Return the multiplications of all heads for pairs of a query and a key: scores, and weighted values."""
    return pairs * model.num_heads * (model.head_dim + model.value_width)


@dataclass(frozen=True)
class StepCost:
    """A training step on ``rows`` of S source and T target positions; ``batch`` fills all of them."""

    model: ModelConfig
    vocab_size: int
    rows: int
    sources: int  # S
    targets: int  # T
    sentences: int = 1  # per row

    def __str__(self) -> str:
        packed = f", {self.sentences} sentences a row" if self.sentences > 1 else ""
        return f"{self.rows} × {self.sources} + {self.targets}{packed}"

    def places(self) -> int:
        """Return the number of source and target tokens in full rows."""
        return self.rows * (self.sources + self.targets)

    def flops(self) -> int:
        """Return the operations in all matrix products of a step, counting multiplications and additions.

        The backward pass takes twice the operations of the forward pass: the gradients of both factors of a product are
        products of the same size. Attention counts every query with every key of its row, including pairs hidden by
        causality or packing, because the definition computes them. A kernel that recomputes scores for the gradients
        does more than is counted; one that skips hidden pairs does less. Sums, norms, activations, softmax, dropout and
        the loss are not counted; neither are products in the optimizer (Muon).
        """
        source = source_products(self.model, self.vocab_size, self.sources)
        pairs = self.targets * (self.targets + self.sources)
        return 2 * 3 * self.rows * (source + target_products(self.model, self.vocab_size, self.targets, pairs))

    def of_views(self, training: TrainingConfig) -> "StepCost":
        """Return the cost of all computed rows: consistency training has two views of each row."""
        return self if training.consistency == "none" else replace(self, rows=2 * self.rows)

    def parameters(self) -> int:
        """Return the number of parameters."""
        return sum(math.prod(leaf.shape) for leaf in list_parameters(self.model, self.vocab_size).values())

    def batch(self) -> Batch:
        """Return random tokens in every position; sentences in a row differ by at most one token in length."""
        generator = np.random.default_rng(0)
        shapes = (self.rows, self.sources), (self.rows, self.targets)
        source, target = (generator.integers(EOS + 1, self.vocab_size, shape, np.int32) for shape in shapes)
        source_segments, source_positions = self._segments_and_positions(self.sources)
        target_segments, target_positions = self._segments_and_positions(self.targets)
        inputs = np.where(target_positions == 0, BOS, np.roll(target, 1, axis=1)).astype(np.int32)
        return Batch(source, source_segments, source_positions, inputs, target, target_segments, target_positions)

    def _segments_and_positions(self, length: int) -> tuple[Int32[np.ndarray, "B n"], Int32[np.ndarray, "B n"]]:
        segment = np.arange(length) * self.sentences // length
        position = np.arange(length) - np.searchsorted(segment, segment)
        segments, positions = (np.tile(row.astype(np.int32), (self.rows, 1)) for row in (segment + 1, position))
        return segments, positions


@dataclass(frozen=True)
class DecodingCost:
    """``batch`` random sentences of ``sources`` tokens; every engine generates exactly ``length`` tokens for each.

    Engines get random weights with the dimensions of ``model``: the values do not affect the time.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    vocab_size: int = 8000
    batch: int = 128
    sources: int = 12
    length: int = 16
    threads: int = 2  # of a CPU

    def __str__(self) -> str:
        return f"{self.batch} sentences of {self.sources} tokens to {self.length}"

    def source_tokens(self) -> Int32[np.ndarray, "B S"]:
        """Return the sentences: full rows of ordinary tokens."""
        generator = np.random.default_rng(0)
        return generator.integers(EOS + 1, self.vocab_size, (self.batch, self.sources), np.int32)

    def flops(self, beam_size: int) -> int:
        """Return the operations in all matrix products for one sentence, counting multiplications and additions.

        The encoder runs once; each decoder layer projects the source to keys and values once. Each of the K beams adds
        the cost of its tokens: projections, feed-forward network, source, all earlier tokens, and vocabulary.
        """
        pairs = self.length * self.sources + self.length * (self.length + 1) // 2
        beam = target_products(self.model, self.vocab_size, self.length, pairs)
        return 2 * (source_products(self.model, self.vocab_size, self.sources) + beam_size * beam)
