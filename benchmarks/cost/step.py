"""What one training step costs by arithmetic: operations of its matrix products, tokens, and bytes.

B batch row · S source position · T target position · N query head · G key/value head · H width of a query / key head ·
U width of a value head · D model width · F feed-forward width · V vocabulary · L layer
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from common.special_tokens import BOS, EOS
from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import init_params
from training.config import TrainingConfig

FLOAT = 4  # bytes: parameters, gradients, moments and logits are float32


@dataclass(frozen=True)
class StepWork:
    """A step on ``rows`` of S + T places. In ``batch`` all of them hold tokens, of so many ``sentences`` a row."""

    model: ModelConfig
    vocab_size: int
    rows: int
    sources: int  # S
    targets: int  # T
    sentences: int = 1

    def __str__(self) -> str:
        packed = f", {self.sentences} sentences a row" if self.sentences > 1 else ""
        return f"{self.rows} × {self.sources} + {self.targets}{packed}"

    def places(self) -> int:
        """Source and target tokens, if none is padding."""
        return self.rows * (self.sources + self.targets)

    def flops(self) -> int:
        """Operations of the matrix products of a step: a multiplication and an addition each.

        Backward takes twice as many as forward: of each product the gradients of both factors are products of the same
        size. Attention counts every query with every key of its row, also what causality or packing hides, as the
        definition computes it. A kernel that makes scores again for the gradients does more than is counted, one that
        skips what is hidden less. Not counted: sums, norms, activations, softmax, dropout, the loss, the optimizer.
        """
        return 2 * 3 * self.rows * (self._encoder_products() + self._decoder_products())

    def _encoder_products(self) -> int:
        """Multiplications forward for a row: every token's projections and feed-forward network, and attention."""
        model = self.model
        token = _queries_and_outputs(model) + _keys_and_values(model) + 2 * model.d_model * model.d_ff
        return model.encoder_layers * (self.sources * token + _attention(model, self.sources, self.sources))

    def _decoder_products(self) -> int:
        """Multiplications forward for a row: attention twice, whose second keys and values are of the source's tokens.

        Each target token also meets the whole vocabulary once.
        """
        model = self.model
        token = 2 * _queries_and_outputs(model) + _keys_and_values(model) + 2 * model.d_model * model.d_ff
        attention = _attention(model, self.targets, self.targets) + _attention(model, self.targets, self.sources)
        layer = self.targets * token + self.sources * _keys_and_values(model) + attention
        return model.decoder_layers * layer + self.targets * model.d_model * self.vocab_size

    def parameters(self) -> int:
        """How many numbers are learned."""
        params = jax.eval_shape(partial(init_params, self.model, self.vocab_size), jax.random.key(0))
        return sum(leaf.size for leaf in jax.tree.leaves(params))

    def bytes(self, training: TrainingConfig) -> dict[str, int]:
        """What a step holds at least, by name; activations depend on what the compiler keeps of them.

        ``gradients`` is also what devices exchange that share a batch; ``logits`` is the largest activation.
        """
        parameters = FLOAT * self.parameters()
        return {
            "parameters": parameters,
            "gradients": parameters,
            "moments": 2 * parameters,
            "averaged": parameters if training.ema_decay else 0,
            "logits": FLOAT * self.rows * self.targets * self.vocab_size,
        }

    def update_bytes(self, training: TrainingConfig) -> int:
        """What the optimizer moves at least: reads gradients, parameters and moments, writes all but the gradients."""
        return FLOAT * self.parameters() * (9 if training.ema_decay else 7)

    def batch(self) -> Batch:
        """Random tokens at every place; the sentences of a row are as long as each other, but for one token."""
        numbers = np.random.default_rng(0)
        source, target = (
            numbers.integers(EOS + 1, self.vocab_size, (self.rows, length), np.int32)
            for length in (self.sources, self.targets)
        )
        source_segments, source_positions = self._places(self.sources)
        target_segments, target_positions = self._places(self.targets)
        inputs = np.where(target_positions == 0, BOS, np.roll(target, 1, axis=1)).astype(np.int32)
        return Batch(source, source_segments, source_positions, inputs, target, target_segments, target_positions)

    def _places(self, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Segments from 1 on and positions within them, both int32[B length]."""
        segment = np.arange(length) * self.sentences // length
        position = np.arange(length) - np.searchsorted(segment, segment)
        rows = [np.tile(row.astype(np.int32), (self.rows, 1)) for row in (segment + 1, position)]
        return rows[0], rows[1]


def real_tokens(batch: Batch) -> int:
    """Source and target tokens of a batch without its padding."""
    return int((batch.source_segments > 0).sum() + (batch.target_segments > 0).sum())


def _queries_and_outputs(model: ModelConfig) -> int:
    """Multiplications for a token: of D to every head's query, which a learned score turns, and of the values to D."""
    turned = model.num_heads * model.head_dim**2 if model.score == "general" else 0
    return model.d_model * model.num_heads * (model.head_dim + model.value_width) + turned


def _keys_and_values(model: ModelConfig) -> int:
    return model.d_model * model.groups * (model.head_dim + model.value_width)


def _attention(model: ModelConfig, queries: int, keys: int) -> int:
    """Multiplications for a row: a score of width H and a value of width U for every query, key and head."""
    return queries * keys * model.num_heads * (model.head_dim + model.value_width)
