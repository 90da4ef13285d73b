"""Attention of one head over one sentence (Vaswani et al. 2017, section 3.2.1)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from attention.scores import SCALED_DOT_PRODUCT, Score


def attend_head(
    query: Float[Array, "T H"],
    key: Float[Array, "S H"],
    value: Float[Array, "S U"],
    visible: Bool[Array, "T S"],
    bias: Float[Array, "T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
    dropout_key: Key[Array, ""] | None = None,
    dropout_rate: float = 0.0,
) -> Float[Array, "T U"]:
    """softmax(Q Kᵀ / √H) V: for each query, a weighted mean of the values whose keys it sees.

    ``score`` may replace Q Kᵀ / √H with another score, and ``bias`` is added to it. Scores and softmax are computed in
    float32 whatever the dtype of the inputs; the output has the dtype of ``value``. A query that sees no key yields
    zeros and has zero gradients. Given a ``dropout_key``, each weight becomes zero with probability ``dropout_rate``,
    and the others are divided by 1 - ``dropout_rate``.
    """
    weights = head_weights(query, key, visible, bias, score)
    if dropout_key is not None:
        is_kept = jax.random.bernoulli(dropout_key, 1 - dropout_rate, weights.shape)
        weights = jnp.where(is_kept, weights / (1 - dropout_rate), 0)
    return jnp.einsum("TS,SU->TU", weights.astype(value.dtype), value)


def head_weights(
    query: Float[Array, "T H"],
    key: Float[Array, "S H"],
    visible: Bool[Array, "T S"],
    bias: Float[Array, "T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
) -> Float[Array, "T S"]:
    """softmax(Q Kᵀ / √H): the attention weights, i.e. how much each value contributes to each query's output."""
    scores = score(query, key)
    return softmax_over_keys(scores if bias is None else scores + bias, visible)


def softmax_over_keys(scores: Float[Array, "T S"], visible: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """The softmax of each query's scores over the keys it sees: every row sums to one, or is zero if it sees none."""
    highest = jnp.max(scores, axis=-1, keepdims=True, where=visible, initial=jnp.finfo(scores.dtype).min)
    # The maximum cancels in the quotient. It only keeps exp from overflowing, so it needs no gradient.
    shifted = jnp.where(visible, scores - jax.lax.stop_gradient(highest), -jnp.inf)
    exponentials = jnp.exp(shifted)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0, 1, total)
