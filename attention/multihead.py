"""One head of one sentence, lifted over the heads of a sentence and the sentences of a batch."""

from functools import partial

import jax
from jaxtyping import Array, Float, Int

from attention.head import attend_head, weigh_head
from attention.masks import visible_keys


def attend(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B N S H"],
    value: Float[Array, "B N S U"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
) -> Float[Array, "B N T U"]:
    """Attention of every head of every sentence, each query over the keys that it may see (``attention/masks.py``).

    Encoder self-attention: queries and keys from the source, ``causal=False``. Masked decoder self-attention: both
    from the target, ``causal=True``. Encoder-decoder attention: queries from the target, keys from the encoder.
    """
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    attend_heads = jax.vmap(attend_head, in_axes=(0, 0, 0, None))  # the heads of a sentence share what is visible
    return jax.vmap(attend_heads)(query, key, value, visible)


def weigh(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B N S H"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
) -> Float[Array, "B N T S"]:
    """The weights with which ``attend`` sums the values, in float32: for looking at, since nothing else keeps them."""
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    weigh_heads = jax.vmap(weigh_head, in_axes=(0, 0, None))
    return jax.vmap(weigh_heads)(query, key, visible)
