"""On which axes of a mesh of devices the axes of arrays lie: the one table, and what holds activations to it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, PartitionSpec
from jaxtyping import Array, Float

MESH_AXES = ("data", "fsdp", "tensor")
ROWS = ("data", "fsdp")  # B: every device of these axes has rows of a batch of its own

# Of parameters and their moments. Letters that are not here, a dot for an axis that has none, and sizes that do not
# divide lie whole on every device.
# D over fsdp saves memory, and is gathered before use; the others over tensor divide the work (Shoeybi et al. 2019,
# section 3): heads, hidden units and logits are computed where their columns lie, and summed over devices afterwards.
TABLE = {"D": "fsdp", "F": "tensor", "N": "tensor", "G": "tensor", "V": "tensor"}


def parameter_spec(mesh: Mesh | AbstractMesh, axes: str, shape: tuple[int, ...]) -> PartitionSpec:
    """Where a parameter lies whose axes have these letters; of vectors over D, each device has the whole."""
    names = [TABLE.get(letter) if axes != "D" else None for letter in axes]
    fits = [name and size % mesh.shape[name] == 0 for name, size in zip(names, shape, strict=True)]
    return PartitionSpec(*(name if fit else None for name, fit in zip(names, fits, strict=True)))


def shard_rows(x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
    """Hold activations to their rows' devices, with the whole width on each; nothing where no mesh is in use.

    Without it, the compiler may follow a parameter's layout and send all activations around instead.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty or len(x) % (mesh.shape["data"] * mesh.shape["fsdp"]):  # a search may have a single row
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(ROWS))


def gather_width(table: Float[Array, "V D"]) -> Float[Array, "V D"]:
    """Gather the width of a table whose rows are looked up: from parts of it, parts of all rows would come."""
    if jax.sharding.get_abstract_mesh().empty:
        return table
    return jax.lax.with_sharding_constraint(table, PartitionSpec(PartitionSpec.UNCONSTRAINED, None))


def replicate(tree: Any) -> Any:
    """Hold results to lie whole on every device, so that every process can read them; nothing without a mesh."""
    if jax.sharding.get_abstract_mesh().empty:
        return tree
    return jax.lax.with_sharding_constraint(tree, PartitionSpec())


def mesh_of(layout: Any) -> Mesh:
    """The mesh of a tree of shardings."""
    mesh: Mesh = jax.tree.leaves(layout)[0].mesh
    return mesh


def on_mesh(mesh: Mesh, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, traced so that ``shard_rows`` holds activations to this mesh."""

    @wraps(function)
    def held(*arguments: Any) -> Any:
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return function(*arguments)

    return held
