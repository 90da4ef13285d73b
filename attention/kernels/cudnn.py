"""Flash attention of NVIDIA's cuDNN, with packed rows told by offsets: no mask and no bias is ever written out."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from attention.kernels.devices import on_each_device
from attention.kernels.padding import padded
from attention.kernels.request import Request
from attention.masks import visible_keys
from attention.scores import DOT_PRODUCTS, Score, as_dot_product


def refusal(request: Request) -> str | None:
    if request.device.platform != "gpu":
        return f"needs an NVIDIA GPU, and this is a {request.device.platform}"
    if request.device.capability < 9:
        return f"takes packed rows from compute capability 9.0 (Hopper) on, not {request.device.capability}"
    if request.dtype != "bfloat16":
        return f"computes in bfloat16, not {request.dtype} (model.dtype=bfloat16)"
    if request.score not in DOT_PRODUCTS:
        return f"has dot-product scores only, not {request.score} ones"
    if request.bias:
        return "takes no position bias here: it would have to be written out with the mask in it"
    if request.dropout:
        return "drops the same weights at every step, so attention dropout is not taken from it"
    if request.width != request.value_width or request.width % 8 or request.width > 128:
        return (
            "needs keys and values of one width, a multiple of 8 up to 128, "
            f"not {request.width} and {request.value_width}"
        )
    return None


def cudnn(
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
    """``attend`` by cuDNN. The segments of a row must be numbered 1, 2, 3 … from its left, padding last.

    That is how data/batches/packing.py makes them. There may be one segment for two positions, the fewest that a
    sentence has; the outputs of any further one are NaN, not wrong. What padding gives, and its gradients, which cuDNN
    leaves open, become zeros. Causality counts from the start of a segment, which in self-attention is the same as in
    the row.

    cuDNN keeps a number for each segment, head and position that there could be, so its memory grows with T²/2: this
    is for rows of up to about a thousand tokens. Lengths must be even, and are padded.
    """
    query, scale = as_dot_product(score, query)
    # jax's own rule for several devices does not say that lengths and offsets are divided as the rows are.
    kernel = partial(_attend, causal=causal, scale=scale)
    return on_each_device(kernel, query, key, value, query_segments, key_segments)


def _attend(
    query: Array, key: Array, value: Array, query_segments: Array, key_segments: Array, *, causal: bool, scale: float
) -> Array:
    length, most = query.shape[2], max(2, (query.shape[2] + 1) // 2)  # of one segment, jax makes no packed row
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    seen, heard = visible.any(axis=2)[:, None, :, None], visible.any(axis=1)[:, None, :, None]
    query, key, value = jnp.where(seen, query, 0), jnp.where(heard, key, 0), jnp.where(heard, value, 0)
    if jax.__version_info__ < (0, 11):  # which takes the stride of a query's token for a key's
        key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    query, key, value = (padded(array, 2, 2).swapaxes(1, 2) for array in (query, key, value))
    where = extents(query_segments, key_segments, most)
    output = packed_attention(query, key, value, where, scale=scale, causal=causal).swapaxes(1, 2)[:, :, :length]
    return jnp.where(seen, jnp.where(query_segments[:, None, :, None] > most, jnp.nan, output), 0)


class Extents(NamedTuple):
    """The length of each of M segments among queries and keys, and where it starts; -1 if it has no query.

    As jax's cuDNN wants them: with one more offset than there are segments.
    """

    query_lengths: Int[Array, "B M"]
    key_lengths: Int[Array, "B M"]
    query_offsets: Int[Array, "B M_1"]
    key_offsets: Int[Array, "B M_1"]


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


def packed_attention(
    query: Float[Array, "B T N H"],
    key: Float[Array, "B S G H"],
    value: Float[Array, "B S G H"],
    where: Extents,
    *,
    scale: float,
    causal: bool,
) -> Float[Array, "B T N H"]:
    """The one call into jax's private cuDNN module, as it is in jax 0.10 and 0.11: the public one knows no offsets."""
    if not (0, 10) <= jax.__version_info__ < (0, 12):
        raise NotImplementedError(f"kernel cudnn was written for jax 0.10 and 0.11, not for {jax.__version__}")
    from jax._src.cudnn.fused_attention_stablehlo import MaskType, dot_product_attention

    return dot_product_attention(
        query,
        key,
        value,
        q_seqlen=where.query_lengths,
        kv_seqlen=where.key_lengths,
        q_offsets=where.query_offsets,
        kv_offsets=where.key_offsets,
        scale=scale,
        mask_type=MaskType.PADDING_CAUSAL if causal else MaskType.PADDING,
        qkv_layout="BTNH",
    )
