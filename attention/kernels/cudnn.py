"""Flash attention of NVIDIA's cuDNN, with packed rows told by offsets: no mask and no bias is ever written out."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from attention.kernels.request import Request
from attention.masks import visible_keys
from attention.scores import Score, as_dot_product


def refusal(request: Request) -> str | None:
    if request.device.platform != "gpu":
        return f"needs an NVIDIA GPU, and this is a {request.device.platform}"
    if request.device.capability < 9:
        return f"takes packed rows from compute capability 9.0 (Hopper) on, not {request.device.capability}"
    if request.dtype != "bfloat16":
        return f"computes in bfloat16, not {request.dtype} (model.dtype=bfloat16)"
    if request.score == "additive":
        return "has dot-product scores only, not additive ones"
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

    That is how data/packing.py makes them. cuDNN leaves the outputs of padding undefined: they become zeros.
    """
    query, scale = as_dot_product(score, query)
    lengths_and_offsets = extents(query_segments, key_segments)
    output = packed_attention(
        query.swapaxes(1, 2),
        key.swapaxes(1, 2),
        value.swapaxes(1, 2),
        *lengths_and_offsets,
        scale=scale,
        causal=causal,
    ).swapaxes(1, 2)
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    return jnp.where(visible.any(axis=-1)[:, None, :, None], output, 0)


def extents(
    query_segments: Int[Array, "B T"], key_segments: Int[Array, "B S"]
) -> tuple[Int[Array, "B T"], Int[Array, "B T"], Int[Array, "B T_1"], Int[Array, "B T_1"]]:
    """The length of each segment among queries and keys, and where it starts; -1 for segments that have no query.

    As jax's cuDNN wants them: as many segments as there could be, one each, and one more offset.
    """
    ids = jnp.arange(1, query_segments.shape[1] + 1)

    queries, keys = (
        (ids[:, None] == segments[:, None, :]).sum(axis=2, dtype=jnp.int32)
        for segments in (query_segments, key_segments)
    )

    def where_present(values: Array) -> Array:
        return jnp.where(queries > 0, values, -1)

    def starts(lengths: Array) -> Array:
        return jnp.pad(where_present(jnp.cumsum(lengths, axis=1) - lengths), ((0, 0), (0, 1)), constant_values=-1)

    return where_present(queries), where_present(keys), starts(queries), starts(keys)


def packed_attention(
    query: Float[Array, "B T N H"],
    key: Float[Array, "B S G H"],
    value: Float[Array, "B S G H"],
    query_lengths: Int[Array, "B T"],
    key_lengths: Int[Array, "B T"],
    query_offsets: Int[Array, "B T_1"],
    key_offsets: Int[Array, "B T_1"],
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
        q_seqlen=query_lengths,
        kv_seqlen=key_lengths,
        q_offsets=query_offsets,
        kv_offsets=key_offsets,
        scale=scale,
        mask_type=MaskType.PADDING_CAUSAL if causal else MaskType.PADDING,
        qkv_layout="BTNH",
    )
