"""Split the rows of a batch over several devices: each computes its own rows, as a single device would.

B batch row
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Shaped

Rows = Any  # an array whose first axis is rows, a tuple of them, or None


def replicate_on_all(tree: Any) -> Any:
    """Copy the arrays to every device of this process; with a single device, return them as they are."""
    devices = jax.local_devices()
    if len(devices) == 1:
        return tree
    return jax.device_put(tree, NamedSharding(Mesh(np.array(devices), "devices"), P()))


def mesh_of(tree: Any) -> Mesh | None:
    """The mesh of the devices that all hold these arrays; None for a single device."""
    sharding = jax.tree.leaves(tree)[0].sharding
    is_shared = isinstance(sharding, NamedSharding) and sharding.mesh.size > 1
    return sharding.mesh if is_shared and sharding.is_fully_replicated else None


def shard_rows(rows: Shaped[np.ndarray, "B ..."], mesh: Mesh | None) -> Any:
    """Deal the rows out, one to each device of the mesh in turn; without a mesh, return them as they are."""
    if mesh is None:
        return rows
    rows = rows.reshape(-1, mesh.size, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)
    return jax.make_array_from_callback(rows.shape, NamedSharding(mesh, P(mesh.axis_names)), lambda index: rows[index])


def call_on_rows(function: Callable[..., Rows], mesh: Mesh | None, shared: Any, *rows: Rows) -> Rows:
    """Call ``function(shared, *rows)`` inside ``jax.jit``, each device on its rows; every process gets all results.

    The function is traced for one device's rows, without a mesh, so its program is the same as on a single device.
    """
    if mesh is None:
        return function(shared, *rows)

    def own(shared: Any, *rows: Rows) -> Rows:
        with jax.sharding.use_abstract_mesh(AbstractMesh((), ())):
            return function(shared, *rows)

    by_rows = P(mesh.axis_names)
    specs = P(), *[by_rows] * len(rows)
    found = jax.shard_map(own, mesh=mesh, in_specs=specs, out_specs=by_rows, check_vma=False)(shared, *rows)
    everywhere = jax.lax.with_sharding_constraint(found, NamedSharding(mesh, P()))

    def in_order(dealt: Array) -> Array:
        return dealt.reshape(mesh.size, -1, *dealt.shape[1:]).swapaxes(0, 1).reshape(dealt.shape)

    return jax.tree.map(in_order, everywhere)


jit_on_rows = partial(jax.jit, static_argnums=(0, 1))(call_on_rows)
