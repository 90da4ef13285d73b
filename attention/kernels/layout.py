"""Arrays as kernels need them: padded to a multiple, and split over devices, since no compiler can split a kernel."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array

from attention.masks import Mask


def on_each_device(
    kernel: Callable[[Array, Array, Array, Mask], Array], query: Array, key: Array, value: Array, mask: Mask
) -> Array:
    """``kernel(query, key, value, mask)``, under ``shard_map`` if a mesh of several devices is in use.

    The last axis of the mesh divides heads, the others divide rows. Key/value heads are repeated if their number is not
    a multiple of that axis's size.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or mesh.size == 1:
        return kernel(query, key, value, mask)
    *rows, heads = mesh.axis_names
    if key.shape[1] % mesh.shape[heads]:
        key, value = (jnp.repeat(array, query.shape[1] // array.shape[1], axis=1) for array in (key, value))
    by_heads, by_rows = PartitionSpec(tuple(rows), heads), PartitionSpec(tuple(rows))
    # check_vma is off because Pallas does not declare which axes its results vary along.
    specs = by_heads, by_heads, by_heads, by_rows
    return jax.shard_map(kernel, in_specs=specs, out_specs=by_heads, check_vma=False)(query, key, value, mask)


def padded(array: Array, axis: int, multiple: int) -> Array:
    """The array, zero-padded along ``axis`` to the next multiple; in segments, zero is padding."""
    missing = -array.shape[axis] % multiple
    return jnp.pad(array, [(0, missing if index == axis else 0) for index in range(array.ndim)])
