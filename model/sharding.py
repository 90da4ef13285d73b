"""How the axes of arrays map to the axes of a mesh of devices: one table, and constraints on activations."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, PartitionSpec
from jaxtyping import Array, Float, Shaped

MESH_AXES = ("data", "fsdp", "tensor")
ROWS = ("data", "fsdp")  # B: the rows of a batch are divided over these axes

# For parameters and their moments. An axis is replicated if its letter is not listed (or is a dot) or its size is not
# divisible. D over fsdp saves memory and is gathered before use. The others over tensor split the computation
# (Shoeybi et al. 2019, section 3): heads, hidden units and logits are computed where their columns are, and summed over
# devices afterwards.
TABLE = {"D": "fsdp", "F": "tensor", "N": "tensor", "G": "tensor", "V": "tensor"}


def parameter_spec(mesh: Mesh | AbstractMesh, axes: str, shape: tuple[int, ...]) -> PartitionSpec:
    """The partition of a parameter with these axis letters; vectors over D are replicated."""
    names = [TABLE.get(letter) if axes != "D" else None for letter in axes]
    fits = [name and size % mesh.shape[name] == 0 for name, size in zip(names, shape, strict=True)]
    return PartitionSpec(*(name if fit else None for name, fit in zip(names, fits, strict=True)))


def shard_rows(x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
    """Constrain activations to be split by rows, with the whole width on each device; without a mesh, return ``x``.

    Otherwise the compiler may follow a parameter's layout and move all activations instead.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or len(x) % (mesh.shape["data"] * mesh.shape["fsdp"]):  # as in a search with a single row
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS))


def on_one_device() -> bool:
    """Whether arrays are not split over devices."""
    mesh = jax.sharding.get_abstract_mesh()
    return mesh.empty or mesh.size == 1


def count_row_groups(rows: int) -> int:
    """The number of devices (or groups along tensor) that share these rows; 1 if the rows cannot be split evenly."""
    mesh = jax.sharding.get_abstract_mesh()
    groups = 1 if mesh.empty else mesh.shape["data"] * mesh.shape["fsdp"]
    return groups if rows % groups == 0 else 1


def copy_to_groups(table: Float[Array, "V D"], groups: int) -> Float[Array, "groups V D"]:
    """One copy per group; each accumulates its own gradient, and the table's gradient is their sum."""
    return _shard_groups(jnp.broadcast_to(table, (groups, *table.shape)))


def split_rows(x: Shaped[Array, "B ..."], groups: int) -> Shaped[Array, "groups rows ..."]:
    """Split the rows into these groups."""
    return _shard_groups(x.reshape(groups, -1, *x.shape[1:]))


def _shard_groups(x: Shaped[Array, "groups ..."]) -> Shaped[Array, "groups ..."]:
    rest = [PartitionSpec.UNCONSTRAINED] * (x.ndim - 1)
    return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS, *rest))


def replicate(tree: Any) -> Any:
    """Replicate arrays on every device, so that every process can read them; without a mesh, return them unchanged."""
    if jax.sharding.get_abstract_mesh().empty:
        return tree
    return jax.lax.with_sharding_constraint(tree, PartitionSpec())


def on_mesh(mesh: Mesh, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, traced so that ``shard_rows`` and the like refer to this mesh."""

    @wraps(function)
    def on_this_mesh(*arguments: Any) -> Any:
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return function(*arguments)

    return on_this_mesh
