"""JAX's own ``jax.nn.dot_product_attention``, in its XLA implementation."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attention.kernels.request import Request, dot_product_only
from attention.masks import Mask


def unsupported(request: Request) -> str | None:
    reason = dot_product_only(request)
    if reason is None and request.value_width != request.width:
        return f"needs values as wide as keys, not {request.value_width} beside {request.width}"
    return reason


def xla(query: Array, key: Array, value: Array, mask: Mask, scale: float, bias: Array | None) -> Array:
    """JAX gives a query that sees no key the mean of all values; the definition gives zeros."""
    visible = mask.visible()
    query, key, value = (array.swapaxes(1, 2) for array in (query, key, value))
    output = jax.nn.dot_product_attention(
        query, key, value, bias=bias, mask=visible[:, None], scale=scale, implementation="xla"
    ).swapaxes(1, 2)
    return jnp.where(visible.any(axis=-1)[:, None, :, None], output, 0)
