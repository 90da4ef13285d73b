"""NVIDIA cuDNN's flash attention, through ``jax.nn``: the scores stay on the chip, the mask does not."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attention.kernels.layout import padded
from attention.kernels.request import Request, dot_product_only
from attention.masks import Mask


def unsupported(request: Request) -> str | None:
    if request.device.platform != "gpu":
        return f"needs an NVIDIA GPU, and this is a {request.device.platform}"
    if request.device.capability < 8:
        return f"needs compute capability 8.0 (Ampere) or newer, not {request.device.capability}"
    if request.dtype != "bfloat16":
        return f"computes in bfloat16, not {request.dtype} (model.dtype=bfloat16)"
    if request.bias:
        return "takes no position bias: its gradient would be as large as the scores"
    if (request.width, request.value_width) not in ((64, 64), (128, 128)):
        return f"needs keys and values of width 64 or 128, not {request.width} and {request.value_width}"
    return dot_product_only(request)  # cuDNN has dropout, but drops the same weights at every step


def cudnn(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Attention by cuDNN, with the mask as numbers that are added to the scores of every head.

    The mask takes B · T · S numbers of two bytes, once for all heads and layers. cuDNN also accepts packed rows without
    a mask, as lengths and offsets of segments, but it then computes every possible segment as a separate row: on an
    H200 that took 17 times as long at 128 positions (docs/benchmarks.md). Odd lengths are padded to even ones.

    If tiles of 128 leave a remainder of 64 keys, the gradients of cuDNN 9.19 are NaN for a query that sees no key, or
    only keys with very low scores (pytorch#196678; seen here at 64 × 64 on an H200). In that case, two keys are added
    that no query sees. Heads have width 64 or 128, and shared heads are repeated, because nothing else gave correct
    results on an H200.
    """
    length = query.shape[2]
    query_segments, key_segments = padded(mask.query_segments, 1, 2), padded_keys(mask.key_segments, 1)
    visible = Mask(query_segments, key_segments, mask.causal).visible()
    key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    query, key, value = padded(query, 2, 2), padded_keys(key, 2), padded_keys(value, 2)
    query, key, value = (array.swapaxes(1, 2) for array in (query, key, value))
    output = flash_attention(query, key, value, mask=visible[:, None], scale=scale)
    output = jnp.where(visible.any(axis=2)[:, :, None, None], output, 0)  # cuDNN gives blind queries a mean
    return output.swapaxes(1, 2)[:, :, :length]


def padded_keys(array: Array, axis: int) -> Array:
    """``array``, zero-padded to an even length that is not a multiple of 128 plus 64."""
    array = padded(array, axis, 2)
    length = array.shape[axis]
    return padded(array, axis, length + 2) if length % 128 == 64 else array


flash_attention = partial(jax.nn.dot_product_attention, implementation="cudnn")
