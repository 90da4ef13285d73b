"""Flash attention of NVIDIA's cuDNN. Offsets describe the packed rows, so no mask is ever stored."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from attention.kernels.layout import on_each_device, padded
from attention.kernels.request import Request, dot_product_only
from attention.masks import Mask


def unsupported(request: Request) -> str | None:
    if request.device.platform != "gpu":
        return f"needs an NVIDIA GPU, and this is a {request.device.platform}"
    if request.device.capability < 9:
        return f"takes packed rows from compute capability 9.0 (Hopper) on, not {request.device.capability}"
    if request.dtype != "bfloat16":
        return f"computes in bfloat16, not {request.dtype} (model.dtype=bfloat16)"
    if request.bias:
        return "takes no position bias here: it would have to be written out with the mask in it"
    if request.width != request.value_width or request.width % 8 or request.width > 128:
        return (
            "needs keys and values of one width, a multiple of 8 up to 128, "
            f"not {request.width} and {request.value_width}"
        )
    return dot_product_only(request)  # cuDNN has dropout, but drops the same weights at every step


def cudnn(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Attention by cuDNN. Segments must be numbered 1, 2, 3 … from the left of a row, padding last.

    data/batches/packing.py numbers them so. A row may have one segment for every two positions, as a sentence has at
    least two tokens; the outputs of further segments are NaN rather than wrong. cuDNN leaves outputs and gradients of
    padding undefined; here they are zeros. Causality counts from the start of a segment, which in self-attention is the
    same as from the start of the row.

    cuDNN stores one number for every possible segment, head and position, so memory grows with T²/2: use this kernel
    for rows of up to about a thousand tokens. Odd lengths are padded to even ones.
    """
    # JAX's own partitioning rule does not declare that lengths and offsets are divided as the rows are.
    return on_each_device(partial(_attend, scale=scale), query, key, value, mask)


def _attend(query: Array, key: Array, value: Array, mask: Mask, *, scale: float) -> Array:
    length, most = query.shape[2], max(2, (query.shape[2] + 1) // 2)  # JAX does not pack rows of one segment
    visible = mask.visible()
    sees, is_seen = visible.any(axis=2)[:, None, :, None], visible.any(axis=1)[:, None, :, None]
    query, key, value = jnp.where(sees, query, 0), jnp.where(is_seen, key, 0), jnp.where(is_seen, value, 0)
    if jax.__version_info__ < (0, 11):  # which mistakes the stride of a query's token for a key's
        key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    query, key, value = (padded(array, 2, 2).swapaxes(1, 2) for array in (query, key, value))
    segments = extents(mask.query_segments, mask.key_segments, most)
    output = packed_attention(query, key, value, segments, scale=scale, causal=mask.causal)
    output = output.swapaxes(1, 2)[:, :, :length]
    return jnp.where(sees, jnp.where(mask.query_segments[:, None, :, None] > most, jnp.nan, output), 0)


class Extents(NamedTuple):
    """Lengths and starts of each segment among queries and among keys; -1 for a segment without queries."""

    query_lengths: Int[Array, "B M"]
    key_lengths: Int[Array, "B M"]
    query_offsets: Int[Array, "B M+1"]  # JAX's cuDNN module expects one more offset than there are segments
    key_offsets: Int[Array, "B M+1"]


def extents(query_segments: Int[Array, "B T"], key_segments: Int[Array, "B S"], most: int) -> Extents:
    """The extents of the segments 1 to ``most``."""
    ids = jnp.arange(1, most + 1)
    queries, keys = (
        (ids[:, None] == segments[:, None, :]).sum(axis=2, dtype=jnp.int32)
        for segments in (query_segments, key_segments)
    )

    def where_present(values: Array) -> Array:
        return jnp.where(queries > 0, values, -1)

    def starts(lengths: Array) -> Array:
        return jnp.pad(where_present(jnp.cumsum(lengths, axis=1) - lengths), ((0, 0), (0, 1)), constant_values=-1)

    return Extents(where_present(queries), where_present(keys), starts(queries), starts(keys))


def packed_attention(query: Array, key: Array, value: Array, segments: Extents, *, scale: float, causal: bool) -> Array:
    """The only call into JAX's private cuDNN module, for jax 0.10 and 0.11: the public function takes no offsets."""
    if not (0, 10) <= jax.__version_info__ < (0, 12):
        raise NotImplementedError(f"kernel cudnn supports jax 0.10 and 0.11, not {jax.__version__}")
    from jax._src.cudnn.fused_attention_stablehlo import MaskType, dot_product_attention

    return dot_product_attention(
        query,
        key,
        value,
        q_seqlen=segments.query_lengths,
        kv_seqlen=segments.key_lengths,
        q_offsets=segments.query_offsets,
        kv_offsets=segments.key_offsets,
        scale=scale,
        mask_type=MaskType.PADDING_CAUSAL if causal else MaskType.PADDING,
        qkv_layout="BTNH",
    )
