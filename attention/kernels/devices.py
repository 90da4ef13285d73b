"""Kernels that no compiler divides among devices: each runs them by itself, on the rows and heads that it has."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

Kernel = Callable[[Array, Array, Array, Array, Array], Array]


def on_each_device(
    kernel: Kernel,
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
) -> Float[Array, "B N T U"]:
    """``kernel`` of these arrays, under ``shard_map`` where a mesh of several devices is in use.

    The last axis of the mesh has heads, those before it have rows. Key/value heads that do not divide are repeated.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return kernel(query, key, value, query_segments, key_segments)
    *rows, heads = mesh.axis_names
    if key.shape[1] % mesh.shape[heads]:
        key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    by_heads, by_rows = PartitionSpec(tuple(rows), heads), PartitionSpec(tuple(rows))
    specs = by_heads, by_heads, by_heads, by_rows, by_rows
    # Without the check: Pallas does not tell on which axes its results vary.
    divided = jax.shard_map(kernel, in_specs=specs, out_specs=by_heads, check_vma=False)
    return divided(query, key, value, query_segments, key_segments)
