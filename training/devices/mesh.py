"""Devices as a mesh with the axes data, fsdp and tensor, and where the training state and its batches lie on it.

One device is the mesh 1 × 1 × 1, and nothing else changes with their number.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import optax
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from common.errors import UserError
from data.batches.packing import Batch, slice_rows
from model.config import ModelConfig
from model.loss import Loss
from model.sharding import MESH_AXES, ROWS, parameter_spec
from model.transformer import Params, structure
from training.config import MeshConfig, TrainingConfig
from training.optimizer import optimizer
from training.state import TrainState, seeded_state, state_like


def make_mesh(config: MeshConfig) -> Mesh:
    """The devices of all processes; ``data`` of 0 takes what fsdp and tensor leave. UserError if that does not fit."""
    devices, taken = jax.device_count(), config.fsdp * config.tensor
    shape = config.data or max(1, devices // taken), config.fsdp, config.tensor
    if np.prod(shape) > devices or (jax.process_count() > 1 and np.prod(shape) != devices):
        raise UserError(
            f"mesh.data × mesh.fsdp × mesh.tensor = {' × '.join(map(str, shape))} is a mesh of {np.prod(shape)} "
            f"devices, and here are {devices}"
        )
    kinds = (AxisType.Auto,) * len(MESH_AXES)
    return jax.make_mesh(shape, MESH_AXES, axis_types=kinds, devices=jax.devices()[: np.prod(shape)])


def refuse_uneven(mesh: Mesh | AbstractMesh, model: ModelConfig, batch_rows: int, accumulation: int) -> None:
    """UserError if a number of the config is not a multiple of what it is divided by."""
    rows, fsdp, tensor = mesh.shape["data"] * mesh.shape["fsdp"], mesh.shape["fsdp"], mesh.shape["tensor"]
    for key, size, by, parts in (
        ("data.batch_rows", batch_rows, "training.accumulation × mesh.data × mesh.fsdp", accumulation * rows),
        ("model.d_model", model.d_model, "mesh.fsdp", fsdp),
        ("model.num_heads", model.num_heads, "mesh.tensor", tensor),
        ("model.d_ff", model.d_ff, "mesh.tensor", tensor),
    ):
        if size % parts:
            raise UserError(f"{key}={size} cannot be divided by {by} = {parts}; change it, or the mesh (mesh.data=1)")


def layout_of(mesh: Mesh, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """Where each array of the training state lies: moments and averages with their parameters, counts everywhere."""
    like = state_like(model, training, vocab_size)
    variables = structure(model, vocab_size)[1]
    params = nnx.to_pure_dict(jax.tree.map(partial(_sharding_of, mesh), variables, is_leaf=_is_parameter))
    everywhere = NamedSharding(mesh, PartitionSpec())
    opt_state = optax.tree.map_params(
        optimizer(training),
        lambda _, sharding: sharding,
        like.opt_state,
        params,
        transform_non_params=lambda _: everywhere,
    )
    return jax.tree.map(lambda _: everywhere, like)._replace(
        params=params, opt_state=opt_state, averaged=None if like.averaged is None else params
    )


def initial_state(layout: TrainState, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """``init_state``, with every array made where it lies."""
    return compiled_initial_state(layout, model, training, vocab_size)()


def compiled_initial_state(
    layout: TrainState, model: ModelConfig, training: TrainingConfig, vocab_size: int
) -> Callable[[], TrainState]:
    """``initial_state``, ready to be called: until then, its arrays take no memory."""
    seed = np.uint32(training.seed)
    seeded = partial(seeded_state, model, training, vocab_size)
    return partial(jax.jit(seeded, out_shardings=layout).lower(seed).compile(), seed)


def laid_out(layout: TrainState, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """Shapes, types and places of a state's arrays, for a checkpoint to be restored into."""
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
        state_like(model, training, vocab_size),
        layout,
    )


def everywhere(mesh: Mesh, params: Params) -> Params:
    """The parameters whole on every device, for a search that reads all of them at every token."""
    return jax.device_put(params, NamedSharding(mesh, PartitionSpec()))


def rows_here(mesh: Mesh, batch_rows: int) -> slice:
    """The rows of a batch that the devices of this process work on: all that it reads."""
    parts = NamedSharding(mesh, PartitionSpec(ROWS)).addressable_devices_indices_map((batch_rows,)).values()
    bounds = [index[0].indices(batch_rows) for index in parts if index]
    return slice(min(start for start, _, _ in bounds), max(stop for _, stop, _ in bounds))


def on_devices(mesh: Mesh, batch: Batch, batch_rows: int, here: slice) -> Batch:
    """The global batch, of which ``batch`` are the rows ``here``; every device gets its own."""
    sharding = NamedSharding(mesh, PartitionSpec(ROWS))

    def place(rows: np.ndarray) -> jax.Array:
        def part(index: tuple[slice, ...] | None) -> np.ndarray:
            start, stop, _ = index[0].indices(batch_rows) if index else (0, batch_rows, 1)
            return rows[start - here.start : stop - here.start]

        return jax.make_array_from_callback((batch_rows, *rows.shape[1:]), sharding, part)

    return Batch(*map(place, batch))


def mean_losses(
    mesh: Mesh, loss_step: Callable[[Params, Batch], Loss], params: Params, batches: Sequence[Batch]
) -> dict[str, float]:
    """Loss and cross-entropy per target token of whole batches, of which each process reads its rows."""
    rows = len(batches[0].source_tokens)
    here = rows_here(mesh, rows)
    losses = [loss_step(params, on_devices(mesh, slice_rows(batch, here), rows, here)) for batch in batches]
    tokens = sum(float(loss.tokens) for loss in losses)
    return {
        "loss": sum(float(loss.smoothed) for loss in losses) / tokens,
        "cross_entropy": sum(float(loss.cross_entropy) for loss in losses) / tokens,
    }


def mesh_in_words(mesh: Mesh) -> str:
    """The devices, and how they share the work if there are several."""
    kind = mesh.devices.flat[0].device_kind
    if mesh.size == 1:
        return kind
    axes = ", ".join(f"{name} {size}" for name, size in mesh.shape.items() if size > 1)
    told = f" in {jax.process_count()} processes" if jax.process_count() > 1 else ""
    return f"{mesh.size} × {kind} ({axes}){told}"


def _sharding_of(mesh: Mesh, parameter: nnx.Param) -> NamedSharding:
    return NamedSharding(mesh, parameter_spec(mesh, parameter.get_metadata("axes"), parameter.shape))


def _is_parameter(node: Any) -> bool:
    return isinstance(node, nnx.Param)
