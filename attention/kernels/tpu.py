"""Splash attention on a TPU: a Pallas kernel of JAX's that knows segments and skips what causality hides."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from attention.kernels.devices import on_each_device
from attention.kernels.padding import padded
from attention.kernels.request import Request
from attention.masks import visible_keys
from attention.scores import DOT_PRODUCTS, Score, as_dot_product

BLOCK = 128  # positions, of queries and of keys: rows are padded to multiples of it


def refusal(request: Request) -> str | None:
    if request.device.platform != "tpu":
        return f"needs a TPU, and this is a {request.device.platform}"
    if request.score not in DOT_PRODUCTS:
        return f"has dot-product scores only, not {request.score} ones"
    if request.bias:
        return "takes no position bias"
    if request.dropout:
        return "has no attention dropout"
    return None


def tpu(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    dropout_rate: float,
    dropout_key: Key[Array, ""] | None,
) -> Float[Array, "B N T U"]:
    """``attend`` by splash attention, sentence by sentence under ``vmap``.

    The kernel lets padding see padding, and gives a query that sees nothing a mean of values: both become zeros.
    """
    query, scale = as_dot_product(score, query)
    return on_each_device(partial(_attend, causal=causal), query * scale, key, value, query_segments, key_segments)


def _attend(
    query: Array, key: Array, value: Array, query_segments: Array, key_segments: Array, *, causal: bool
) -> Array:
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    queries = padded(query, 2, BLOCK), padded(query_segments, 1, BLOCK)
    keys = padded(key, 2, BLOCK), padded(value, 2, BLOCK), padded(key_segments, 1, BLOCK)
    attend_sentence = splash(query.shape[1], queries[1].shape[1], keys[2].shape[1], causal=causal)
    output = jax.vmap(attend_sentence)(*queries, *keys)[:, :, : query.shape[2]]
    return jnp.where(visible.any(axis=-1)[:, None, :, None], output, 0).astype(value.dtype)


def splash(heads: int, queries: int, keys: int, *, causal: bool):  # type: ignore[no-untyped-def]
    """The kernel of one sentence: (query, query_segments, key, value, key_segments) → output."""
    from jax.experimental.pallas.ops.tpu import splash_attention  # here, because it takes long to load

    kind = splash_attention.CausalMask if causal else splash_attention.FullMask
    mask = splash_attention.MultiHeadMask([kind((queries, keys)) for _ in range(heads)])
    kernel = splash_attention.make_splash_mha(mask, head_shards=1, q_seq_shards=1)

    def attend_sentence(query: Array, query_segments: Array, key: Array, value: Array, key_segments: Array) -> Array:
        return kernel(query, key, value, segment_ids=splash_attention.SegmentIds(query_segments, key_segments))

    return attend_sentence
