"""The embedding table, shared by source tokens, target tokens and logits."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import PAD, TAGS
from model.config import POSITIONS, ModelConfig
from model.layers import DropoutKey, bernoulli, dropout
from model.loss import Loss, LossOfLogits, loss_in_chunks
from model.matmul import matmul
from model.positions import sinusoidal_positions
from model.sharding import copy_to_groups, count_row_groups, shard_rows, split_rows


class Embedding(nnx.Module):
    """One table for source, target and output (Press and Wolf 2017; Vaswani et al. 2017, section 3.4)."""

    def __init__(self, config: ModelConfig, vocab_size: int, *, rngs: nnx.Rngs):
        deviation = config.d_model**-0.5
        self.table = nnx.Param(jax.random.normal(rngs.params(), (vocab_size, config.d_model)) * deviation, axes="VD")
        if config.positions == "learned":
            shape = config.max_positions, config.d_model
            self.positions = nnx.Param(jax.random.normal(rngs.params(), shape) * deviation, axes="TD")
        self.config = config

    def __call__(self, ids: Int[Array, "B T"], positions: Int[Array, "B T"], key: DropoutKey) -> Float[Array, "B T D"]:
        """Rows of the table times √D, plus position embeddings, with dropout, in the dtype of the activations.

        A hidden token (see ``hide``) has a zero embedding but keeps its position.
        """
        found = jnp.where((ids == PAD)[..., None], 0, look_up(self.table[...], ids))
        embedded = found * self.config.d_model**0.5 + self._position_embeddings(positions)
        return shard_rows(dropout(embedded.astype(self.config.dtype), self.config.dropout, key))

    def _position_embeddings(self, positions: Int[Array, "B T"]) -> Float[Array, "B T D"] | float:
        if POSITIONS[self.config.positions] != "embeddings":
            return 0.0
        match self.config.positions:
            case "sinusoidal":
                return sinusoidal_positions(positions, self.config.d_model)
            case "learned":  # NaN beyond the table; plain indexing would silently repeat its last row
                return self.positions[...].at[positions].get(mode="fill", fill_value=jnp.nan)
            case _:
                raise NotImplementedError(f"model.positions={self.config.positions}")

    def logits(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows V"]:
        """Unnormalized log-probabilities of the vocabulary, in float32: ``x`` times every row of the table."""
        return project(x, self.table[...], self.config.matmul_dtype)

    def loss(
        self, loss: LossOfLogits, x: Float[Array, "B T D"], labels: Int[Array, "B T"], real: Bool[Array, "B T"]
    ) -> Loss:
        """The loss of the logits of ``x``, with only one chunk of logits in memory at a time.

        On a mesh, each device accumulates the gradient of its own copy of the table; devices add up theirs once, not
        after every chunk.
        """
        of_rows = partial(loss_in_chunks, partial(project, dtype=self.config.matmul_dtype), loss)
        groups, table = count_row_groups(len(x)), self.table[...]
        if groups == 1:
            return of_rows(x, table, labels, real)
        rows, of_labels, of_real = (split_rows(array, groups) for array in (x, labels, real))
        return jax.tree.map(jnp.sum, jax.vmap(of_rows)(rows, copy_to_groups(table, groups), of_labels, of_real))


def hide(ids: Int[Array, "B T"], rate: float, key: DropoutKey) -> Int[Array, "B T"]:
    """Word dropout: each token becomes PAD with probability ``rate``; without a key, return ``ids``.

    Special tokens (BOS, EOS, direction tags) are never hidden. Attention and positions depend on segments, so a hidden
    token keeps its place, as in Sennrich and Zhang (2019, section 3.2) and Shen et al. (2020, token cutoff).
    """
    if key is None or rate == 0:
        return ids
    hidden = bernoulli(key.key, rate if key.word_factor is None else rate * key.word_factor, ids.shape)
    return jnp.where(hidden & (ids > TAGS[-1]), PAD, ids)


def look_up(table: Float[Array, "V D"], ids: Int[Array, "B T"]) -> Float[Array, "B T D"]:
    """Look up rows of the table. On a mesh, each device uses its own copy: see ``Embedding.loss``."""
    groups = count_row_groups(ids.shape[0])
    if groups == 1:
        return table[ids]
    found = jax.vmap(lambda table, ids: table[ids])(copy_to_groups(table, groups), split_rows(ids, groups))
    return found.reshape(*ids.shape, -1)


def project(x: Float[Array, "*rows D"], table: Float[Array, "V D"], dtype: str) -> Float[Array, "*rows V"]:
    """``x`` times every row of the table, in float32."""
    return matmul(x.astype(jnp.float32), table, dtype, contract=1)
