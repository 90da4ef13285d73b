"""Flash attention of NVIDIA's cuDNN, through ``jax.nn``: the scores stay on the chip, the mask does not."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attention.kernels.layout import on_each_device, padded
from attention.kernels.request import Request, dot_product_only
from attention.masks import Mask

SHORT = 64


def unsupported(request: Request) -> str | None:
    if request.device.platform != "gpu":
        return f"needs an NVIDIA GPU, and this is a {request.device.platform}"
    if request.device.capability < 8:
        return f"needs compute capability 8.0 (Ampere) or newer, not {request.device.capability}"
    if request.dtype != "bfloat16":
        return f"computes in bfloat16, not {request.dtype} (model.dtype=bfloat16)"
    if request.bias:
        return "takes no position bias: its gradient would be as large as the scores"
    if min(request.queries, request.keys) <= SHORT:
        return f"needs rows of more than {SHORT} positions, not {request.queries} queries and {request.keys} keys"
    if (request.width, request.value_width) not in ((64, 64), (128, 128)):
        return f"needs keys and values of width 64 or 128, not {request.width} and {request.value_width}"
    return dot_product_only(request)  # cuDNN has dropout, but drops the same weights at every step


def cudnn(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Attention by cuDNN, with the mask as numbers that are added to the scores of every head.

    The mask takes B · T · S numbers of two bytes, once for all heads and layers. cuDNN also takes packed rows without a
    mask, as lengths and offsets of segments, but it then computes every possible segment as a row of its own: on an
    H200 that took 17 times as long at 128 positions (docs/benchmarks.md). Odd lengths are padded to even ones.

    It is called only in ways in which it was right on an H200 (cuDNN 9.19). With eight heads and 64 × 64 positions, the
    gradients of queries were NaN there, with heads of width 16 or 64, shared by cuDNN or repeated. So rows are longer,
    heads are of width 64 or 128, and shared ones are repeated. A query that sees no key is given all of them, because
    cuDNN's softmax of hidden scores alone is not to be relied on, and its output is then zero.
    """
    return on_each_device(partial(_attend, scale=scale), query, key, value, mask)


def _attend(query: Array, key: Array, value: Array, mask: Mask, *, scale: float) -> Array:
    length = query.shape[2]
    query_segments, key_segments = padded(mask.query_segments, 1, 2), padded(mask.key_segments, 1, 2)
    visible = Mask(query_segments, key_segments, mask.causal).visible()
    key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    query, key, value = (padded(array, 2, 2).swapaxes(1, 2) for array in (query, key, value))
    sees = visible.any(axis=2)
    output = flash_attention(query, key, value, mask=(visible | ~sees[:, :, None])[:, None], scale=scale)
    output = jnp.where(sees[:, :, None, None], output, 0)
    return output.swapaxes(1, 2)[:, :, :length]


flash_attention = partial(jax.nn.dot_product_attention, implementation="cudnn")
