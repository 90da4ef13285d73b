"""What one training step costs, by arithmetic: operations of its matrix products, tokens, and bytes.

B batch row · S source position · T target position · V vocabulary
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import numpy as np
from flax import nnx
from jaxtyping import Int32

from benchmarks.cost import products
from common.special_tokens import BOS, EOS
from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import Transformer
from training.config import TrainingConfig

FLOAT = 4  # bytes: parameters, gradients, moments and logits are float32


class Parameter(NamedTuple):
    """A parameter without its values."""

    axes: str  # the letters of model/sharding.py
    shape: tuple[int, ...]


@cache
def list_parameters(model: ModelConfig, vocab_size: int) -> tuple[Parameter, ...]:
    """Return every parameter of the model."""
    abstract = nnx.eval_shape(lambda: Transformer(model, vocab_size, rngs=nnx.Rngs(0)))
    leaves = jax.tree.leaves(nnx.state(abstract, nnx.Param), is_leaf=lambda node: isinstance(node, nnx.Param))
    return tuple(Parameter(leaf.get_metadata("axes"), leaf.shape) for leaf in leaves)


@dataclass(frozen=True)
class StateBytes:
    """Bytes that a step holds at least. Other activations depend on what the compiler keeps.

    Devices that share a batch exchange ``gradients``; ``logits`` are the largest activation.
    """

    parameters: int
    gradients: int
    moments: int
    averaged: int
    logits: int


@dataclass(frozen=True)
class StepCost:
    """A training step on ``rows`` of S source and T target places, all filled by ``batch``."""

    model: ModelConfig
    vocab_size: int
    rows: int
    sources: int  # S
    targets: int  # T
    sentences: int = 1  # that share a row

    def __str__(self) -> str:
        packed = f", {self.sentences} sentences a row" if self.sentences > 1 else ""
        return f"{self.rows} × {self.sources} + {self.targets}{packed}"

    def places(self) -> int:
        """Return the number of source and target tokens of full rows."""
        return self.rows * (self.sources + self.targets)

    def flops(self) -> int:
        """Return the operations of all matrix products of a step: a multiplication and an addition each.

        The backward pass takes twice the operations of the forward pass: the gradients of both factors of a product are
        products of the same size. Attention counts every query with every key of its row, including pairs hidden by
        causality or packing, as the definition computes them. A kernel that recomputes scores for the gradients does
        more than is counted, one that skips hidden pairs less. Sums, norms, activations, softmax, dropout, the loss and
        the optimizer are not counted.
        """
        model = self.model
        layer = self.targets * products.decoder_token(model) + self.sources * products.key_and_value(model)
        layer += products.attention(model, self.targets * (self.targets + self.sources))
        logits = self.targets * model.d_model * self.vocab_size
        return 2 * 3 * self.rows * (products.encoder(model, self.sources) + model.decoder_layers * layer + logits)

    def parameters(self) -> int:
        """Return the number of learned values."""
        return sum(math.prod(parameter.shape) for parameter in list_parameters(self.model, self.vocab_size))

    def bytes(self, training: TrainingConfig) -> StateBytes:
        """Return the bytes that a step holds at least on one device."""
        parameters = FLOAT * self.parameters()
        averaged = parameters if training.ema_decay else 0
        logits = FLOAT * self.rows * self.targets * self.vocab_size
        return StateBytes(parameters, parameters, 2 * parameters, averaged, logits)

    def update_bytes(self, training: TrainingConfig) -> int:
        """Return the bytes that the optimizer moves at least: it reads gradients and state, and writes the state."""
        return FLOAT * self.parameters() * (9 if training.ema_decay else 7)

    def batch(self) -> Batch:
        """Return random tokens in every place; the sentences of a row differ by at most one token in length."""
        generator = np.random.default_rng(0)
        source, target = (
            generator.integers(EOS + 1, self.vocab_size, (self.rows, length), np.int32)
            for length in (self.sources, self.targets)
        )
        source_segments, source_positions = self._segments_and_positions(self.sources)
        target_segments, target_positions = self._segments_and_positions(self.targets)
        inputs = np.where(target_positions == 0, BOS, np.roll(target, 1, axis=1)).astype(np.int32)
        return Batch(source, source_segments, source_positions, inputs, target, target_segments, target_positions)

    def _segments_and_positions(self, length: int) -> tuple[Int32[np.ndarray, "B n"], Int32[np.ndarray, "B n"]]:
        segment = np.arange(length) * self.sentences // length
        position = np.arange(length) - np.searchsorted(segment, segment)
        segments, positions = (np.tile(row.astype(np.int32), (self.rows, 1)) for row in (segment + 1, position))
        return segments, positions


def count_tokens(batch: Batch) -> int:
    """Return the number of source and target tokens of a batch, without padding."""
    return int((batch.source_segments > 0).sum() + (batch.target_segments > 0).sum())
