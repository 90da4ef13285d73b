"""The same bits on 1, 2, 4 and 8 devices: ``training.reproducible=any_mesh``.

How XLA fuses and orders a program's computations depends on the number of devices that the program is split over. Here
no program that rounds is split: each runs on one device, with arrays of the same shapes on every mesh. A batch has
eight groups of rows. Their sums are added in pairs, then pairs of pairs, wherever the groups are placed. Programs over
several devices only add and move numbers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.flatten_util import ravel_pytree
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
from jaxtyping import Array, Float, Int, PyTree

import training.step as usual
from common.errors import UserError
from data.batches.packing import Batch, slice_rows
from model.loss import Loss, cross_entropy
from model.sharding import ROWS
from model.transformer import Params, Transformer
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import make_mesh
from training.factors import draws_of
from training.state import TrainState

GROUPS = 8
OfGroup = Callable[[Any, Batch, Int[Array, ""]], PyTree]  # sums from a tree, the group's rows, and its number
Graph = nnx.GraphDef[Transformer]


class Programs(NamedTuple):
    """The programs that a run computes with."""

    train_step: usual.TrainStep
    gradients: usual.Gradients
    loss_step: usual.LossStep


def make_programs(graphdef: Graph, config: TrainingConfig, like: TrainState | None = None) -> Programs:
    """The programs for ``training.reproducible``, for states that are sharded like ``like`` or are on one device."""
    sharding: Any = None if like is None else like.step.sharding
    smoothing, mesh = config.label_smoothing, sharding and sharding.mesh
    match config.reproducible:
        case "same_mesh":
            train_step = usual.make_train_step(graphdef, config, like)
            gradients = jax.jit(usual.make_gradients(graphdef, config))
            return Programs(train_step, gradients, usual.make_loss_step(graphdef, smoothing, mesh))
        case "any_mesh":
            mesh = mesh or one_device()
            totals = sum_over_groups(mesh, training_sums(graphdef, config))
            train_step = make_train_step(totals, config, mesh, like)
            return Programs(train_step, make_gradients(totals), make_loss_step(graphdef, smoothing, mesh))
        case _:
            raise NotImplementedError(f"training.reproducible={config.reproducible}")


def one_device() -> Mesh:
    return make_mesh(MeshConfig(data=1))


def check_any_mesh(config: TrainingConfig, mesh: Mesh | AbstractMesh, batch_rows: int) -> None:
    """UserError if any_mesh is set but the groups cannot be dealt out evenly or a row is split over several devices."""
    if config.reproducible != "any_mesh":
        return
    devices, tensor = mesh.shape["data"] * mesh.shape["fsdp"], mesh.shape["tensor"]
    for key, value, fits, needed in (
        ("mesh.tensor", tensor, tensor == 1, "1, since devices that share a row add in another order"),
        ("mesh.data × mesh.fsdp", devices, GROUPS % devices == 0, f"1, 2, 4 or {GROUPS}"),
        ("data.batch_rows", batch_rows, batch_rows % GROUPS == 0, f"a multiple of {GROUPS}"),
    ):
        if not fits:
            raise UserError(f"training.reproducible=any_mesh: {key} must be {needed}, not {value}")


def sum_over_groups(mesh: Mesh, of_group: OfGroup) -> Callable[[PyTree, Batch], Float[Array, "numbers"]]:
    """``(tree, batch) → sum over all groups``, with its leaves concatenated. Both trees are on all devices."""
    by_rows = NamedSharding(mesh, PartitionSpec(ROWS))
    on_rows = partial(jax.shard_map, mesh=mesh, in_specs=by_rows.spec, check_vma=False)
    split, add = jax.jit(on_rows(_split, out_specs=by_rows.spec)), jax.jit(on_rows(_add, out_specs=PartitionSpec()))
    numbers_of = jax.jit(lambda tree, rows, number: ravel_pytree(of_group(tree, rows, number[0]))[0][None])

    def total(tree: PyTree, batch: Batch) -> Float[Array, "numbers"]:
        copies = copies_of(tree)
        groups = [copies_of(group) for group in split(jax.device_put(batch, by_rows))]  # first those of all devices
        sums = [[numbers_of(copy, *part) for copy, part in zip(copies, group, strict=True)] for group in groups]
        return add([join(of_devices, by_rows) for of_devices in sums])

    return total


def _split(batch: Batch) -> list[tuple[Batch, Int[Array, "1"]]]:
    """The rows of each of a device's groups, and the group's number."""
    count = GROUPS // jax.lax.axis_size(ROWS)
    rows, first = len(batch.source_tokens) // count, count * jax.lax.axis_index(ROWS)
    return [(slice_rows(batch, slice(n * rows, (n + 1) * rows)), (first + n)[None]) for n in range(count)]


def _add(sums: list[Float[Array, "1 numbers"]]) -> Float[Array, "numbers"]:
    """Add in pairs: first a device's groups, then the totals of devices with numbers that differ in one bit."""
    while len(sums) > 1:
        sums = [one + other for one, other in zip(sums[::2], sums[1::2], strict=True)]
    total, devices = sums[0][0], range(jax.lax.axis_size(ROWS))
    for bit in (bit for bit in (1, 2, 4) if bit in devices):
        total += jax.lax.ppermute(total, ROWS, [(device, device ^ bit) for device in devices])
    return total


def copies_of(tree: PyTree) -> list[PyTree]:
    """Each local device's part of a tree."""
    parts = [[_data_of(shard) for shard in leaf.addressable_shards] for leaf in jax.tree.leaves(tree)]
    return [jax.tree.unflatten(jax.tree.structure(tree), of_device) for of_device in zip(*parts, strict=True)]


def _data_of(shard: Any) -> Array:
    """The shard's array on its device only: on a mesh of one it may refer to the mesh and cause a recompilation."""
    data: Array = shard.data
    return data if isinstance(data.sharding, SingleDeviceSharding) else jax.device_put(data, shard.device)


def join(parts: list[PyTree], sharding: NamedSharding) -> PyTree:
    """The tree with one of these parts on each local device: a row or, if it is replicated, the whole."""

    def join_leaves(*leaves: Array) -> Array:
        shape = leaves[0].shape
        whole = shape if sharding.is_fully_replicated else (sharding.mesh.size, *shape[1:])
        return jax.make_array_from_single_device_arrays(whole, sharding, list(leaves))

    return jax.tree.map(join_leaves, *parts)


def training_sums(graphdef: Graph, config: TrainingConfig) -> OfGroup:
    """Gradient, loss and source tokens of a group; dropout is that of a slice with ``training.accumulation=8``."""
    root_key, summed_gradients = jax.random.key(config.seed), usual.make_summed_gradients(graphdef, config)

    def of_group(params_and_step: tuple[Params, Array], rows: Batch, number: Int[Array, ""]) -> PyTree:
        params, step = params_and_step
        key = jax.random.split(jax.random.fold_in(root_key, step), GROUPS)[number]
        return *summed_gradients(params, rows, draws_of(config, key, step)), usual.count_source_tokens(rows)

    return of_group


def as_sums(params: Params, numbers: Float[Array, "numbers"]) -> tuple[Params, Loss, Float[Array, ""]]:
    """Gradient per token, loss and source tokens of a batch, from the total of ``training_sums``."""
    like = params, Loss(*[jnp.zeros(())] * len(Loss._fields)), jnp.zeros(())
    gradients, sums, source_tokens = ravel_pytree(like)[1](numbers)
    return usual.per_token(gradients, sums), sums, source_tokens


def make_train_step(
    totals: Callable[[PyTree, Batch], Array], config: TrainingConfig, mesh: Mesh, like: TrainState | None
) -> usual.TrainStep:
    """The update of ``usual.make_train_step``. Each device computes all of it, even if it keeps only a part."""
    everywhere, update = NamedSharding(mesh, PartitionSpec()), usual.make_update(config)
    shardings = everywhere if like is None else jax.tree.map(lambda leaf: leaf.sharding, like)
    gather, divide = (jax.jit(lambda state: state, out_shardings=where) for where in (everywhere, shardings))
    is_divided = not all(sharding.is_fully_replicated for sharding in jax.tree.leaves(shardings))

    @partial(jax.jit, donate_argnums=0)
    def update_copy(state: TrainState, total: Array) -> tuple[TrainState, usual.StepReport]:
        return update(state, *as_sums(state.params, total))

    def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, usual.StepReport]:
        whole = gather(state) if is_divided else jax.device_put(state, everywhere)
        parts = zip(copies_of(whole), copies_of(totals((whole.params, whole.step), batch)), strict=True)
        state, report = join([update_copy(*part) for part in parts], everywhere)
        return divide(state) if is_divided else state, report

    return train_step


def make_gradients(totals: Callable[[PyTree, Batch], Array]) -> usual.Gradients:
    return lambda params, batch, step: as_sums(params, totals((params, step), batch))[:2]


def make_loss_step(graphdef: Graph, smoothing: float, mesh: Mesh) -> usual.LossStep:
    """Like ``usual.make_loss_step``, in groups."""
    loss = partial(cross_entropy, smoothing=smoothing)
    gather = jax.jit(lambda params: params, out_shardings=NamedSharding(mesh, PartitionSpec()))
    total = sum_over_groups(mesh, lambda params, rows, _: usual.summed_loss(graphdef, params, rows, loss, None))
    return lambda params, batch: Loss(*total(gather(params), batch))
