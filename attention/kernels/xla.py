"""JAX's own ``jax.nn.dot_product_attention``, in its XLA implementation."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from attention.kernels.request import Request
from attention.masks import visible_keys
from attention.scores import DOT_PRODUCTS, Score, as_dot_product


def refusal(request: Request) -> str | None:
    if request.score not in DOT_PRODUCTS:
        return f"has dot-product scores only, not {request.score} ones"
    if request.dropout:
        return "has no attention dropout"
    if request.value_width != request.width:
        return f"needs values as wide as keys, not {request.value_width} beside {request.width}"
    return None


def xla(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S H"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    dropout_rate: float,
    dropout_key: Key[Array, ""] | None,
) -> Float[Array, "B N T H"]:
    """``attend`` by JAX. It gives a query that sees nothing the mean of all values, where zeros are wanted."""
    query, scale = as_dot_product(score, query)
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    output = jax.nn.dot_product_attention(
        query.swapaxes(1, 2),
        key.swapaxes(1, 2),
        value.swapaxes(1, 2),
        bias=bias,
        mask=visible[:, None],
        scale=scale,
        implementation="xla",
    ).swapaxes(1, 2)
    return jnp.where(visible.any(axis=-1)[:, None, :, None], output, 0)
