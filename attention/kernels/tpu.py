"""Splash attention on a TPU: JAX's Pallas kernel that supports segments and skips what causality hides."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attention.kernels.layout import padded
from attention.kernels.request import Request, dot_product_only
from attention.masks import Mask

BLOCK = 128  # positions; rows of queries and of keys are padded to a multiple of it


def unsupported(request: Request) -> str | None:
    if request.device.platform != "tpu":
        return f"needs a TPU, and this is a {request.device.platform}"
    if request.bias:
        return "takes no position bias"
    return dot_product_only(request)


def tpu(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Splash attention of each sentence. It lets padding see padding, and blind queries get a mean: both become 0."""
    visible = mask.visible()
    queries = padded(query * scale, 2, BLOCK), padded(mask.query_segments, 1, BLOCK)
    keys = padded(key, 2, BLOCK), padded(value, 2, BLOCK), padded(mask.key_segments, 1, BLOCK)
    attend_sentence = splash(query.shape[1], queries[1].shape[1], keys[2].shape[1], causal=mask.causal)
    output = jax.vmap(attend_sentence)(*queries, *keys)[:, :, : query.shape[2]]
    return jnp.where(visible.any(axis=-1)[:, None, :, None], output, 0).astype(value.dtype)


def splash(heads: int, queries: int, keys: int, *, causal: bool):  # type: ignore[no-untyped-def]
    """The kernel of one sentence: (query, query_segments, key, value, key_segments) → output."""
    from jax.experimental.pallas.ops.tpu import splash_attention  # slow, so imported only when used

    kind = splash_attention.CausalMask if causal else splash_attention.FullMask
    mask = splash_attention.MultiHeadMask([kind((queries, keys)) for _ in range(heads)])
    kernel, ids = splash_attention.make_splash_mha(mask, head_shards=1, q_seq_shards=1), splash_attention.SegmentIds
    return lambda query, queries, key, value, keys: kernel(query, key, value, segment_ids=ids(queries, keys))
