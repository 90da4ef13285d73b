"""Attention of one head, for one sentence (Vaswani et al. 2017, section 3.2.1)."""

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
    dropout_rate: float = 0.0,
    dropout_key: Key[Array, ""] | None = None,
) -> Float[Array, "T U"]:
    """softmax(Q Kᵀ / √H) V, over the keys that each query may see.

    Another score may stand for Q Kᵀ / √H, and a bias is added to it. Scores and softmax are float32 whatever the
    dtype of the inputs; the result has the dtype of ``value``. A query that sees no key yields zeros, with zero
    gradients. With a dropout key, weights are dropped at the given rate and the others scaled up.
    """
    weights = weigh_head(query, key, visible, bias, score)
    if dropout_key is not None:
        kept = jax.random.bernoulli(dropout_key, 1 - dropout_rate, weights.shape)
        weights = jnp.where(kept, weights / (1 - dropout_rate), 0)
    return jnp.einsum("TS,SU->TU", weights.astype(value.dtype), value)


def weigh_head(
    query: Float[Array, "T H"],
    key: Float[Array, "S H"],
    visible: Bool[Array, "T S"],
    bias: Float[Array, "T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
) -> Float[Array, "T S"]:
    """softmax(Q Kᵀ / √H): how much each query takes from each key."""
    scores = score(query, key)
    return softmax_over_keys(scores if bias is None else scores + bias, visible)


def softmax_over_keys(scores: Float[Array, "T S"], visible: Bool[Array, "T S"]) -> Float[Array, "T S"]:
    """Each query's weights over its visible keys: they sum to one, or are all zero where nothing is visible."""
    highest = jnp.max(scores, axis=-1, keepdims=True, where=visible, initial=jnp.finfo(scores.dtype).min)
    # The maximum cancels out of the quotient; it only keeps exp from overflowing, so no gradient flows through it.
    shifted = jnp.where(visible, scores - jax.lax.stop_gradient(highest), -jnp.inf)
    exponentials = jnp.exp(shifted)
    total = jnp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / jnp.where(total == 0, 1, total)
