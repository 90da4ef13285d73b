"""Kernels that no compiler partitions: each device runs them on its own rows and heads."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array

from attention.masks import Mask

Kernel = Callable[[Array, Array, Array, Mask], Array]


def on_each_device(kernel: Kernel, query: Array, key: Array, value: Array, mask: Mask) -> Array:
    """``kernel(query, key, value, mask)``, under ``shard_map`` if a mesh of several devices is in use.

    The last axis of the mesh divides heads, the others divide rows. Key/value heads are repeated if their number is not
    a multiple of the devices'.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return kernel(query, key, value, mask)
    *rows, heads = mesh.axis_names
    if key.shape[1] % mesh.shape[heads]:
        key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    by_heads, by_rows = PartitionSpec(tuple(rows), heads), PartitionSpec(tuple(rows))

    def on_one_device(query: Array, key: Array, value: Array, query_segments: Array, key_segments: Array) -> Array:
        return kernel(query, key, value, Mask(query_segments, key_segments, mask.causal))

    # check_vma is off because Pallas does not declare along which axes its results vary.
    specs = by_heads, by_heads, by_heads, by_rows, by_rows
    divided = jax.shard_map(on_one_device, in_specs=specs, out_specs=by_heads, check_vma=False)
    return divided(query, key, value, mask.query_segments, mask.key_segments)
