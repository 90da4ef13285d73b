"""Devices as a mesh with axes data, fsdp and tensor (1 × 1 × 1 for one device); placement of states and batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import jax
import numpy as np
import optax
from flax import nnx
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from common.errors import UserError
from data.batches.packing import Batch
from model.config import ModelConfig
from model.sharding import MESH_AXES, ROWS, parameter_spec
from model.transformer import Params, structure
from training.config import MeshConfig, TrainingConfig
from training.optimizer import optimizer
from training.state import TrainState, initial_state_from, seeded_state, state_shapes


def make_mesh(config: MeshConfig, devices: Sequence[jax.Device] = ()) -> Mesh:
    """These devices, or those of all processes, as a mesh; ``data=0`` takes as many as fsdp and tensor leave.

    UserError if there are too few devices, or if some given devices, or some of several processes, would be left out.
    """
    available, all_of_them = devices or jax.devices(), bool(devices) or jax.process_count() > 1
    taken = config.fsdp * config.tensor
    shape = config.data or max(1, len(available) // taken), config.fsdp, config.tensor
    if math.prod(shape) > len(available) or (all_of_them and math.prod(shape) != len(available)):
        raise UserError(
            f"mesh.data × mesh.fsdp × mesh.tensor = {' × '.join(map(str, shape))} is a mesh of {math.prod(shape)} "
            f"devices, but {len(available)} are available"
        )
    kinds = (AxisType.Auto,) * len(MESH_AXES)
    return jax.make_mesh(shape, MESH_AXES, axis_types=kinds, devices=available[: math.prod(shape)])


def check_divisible(mesh: Mesh | AbstractMesh, model: ModelConfig, batch_rows: int, accumulation: int) -> None:
    """UserError if a size in the config is not a multiple of the number of parts it is split into."""
    rows, fsdp, tensor = mesh.shape["data"] * mesh.shape["fsdp"], mesh.shape["fsdp"], mesh.shape["tensor"]
    for key, size, by, parts in (
        ("data.batch_rows", batch_rows, "training.accumulation × mesh.data × mesh.fsdp", accumulation * rows),
        ("model.d_model", model.d_model, "mesh.fsdp", fsdp),
        ("model.encoder_width", model.encoder_width, "mesh.fsdp", fsdp),
        ("model.num_heads", model.num_heads, "mesh.tensor", tensor),
        ("model.d_ff", model.d_ff, "mesh.tensor", tensor),
    ):
        if size % parts:
            raise UserError(f"{key}={size} cannot be divided by {by} = {parts}; change it, or the mesh (mesh.data=1)")


@dataclass(frozen=True)
class Devices:
    """The devices of a run, and how they share the rows of its batches."""

    mesh: Mesh
    batch_rows: int

    @property
    def by_rows(self) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(ROWS))

    @cached_property
    def local_rows(self) -> slice:
        """The rows of a batch that this process's devices work on; it needs to read no others."""
        parts = [self._rows(i) for i in self.by_rows.addressable_devices_indices_map((self.batch_rows,)).values()]
        return slice(min(part.start for part in parts), max(part.stop for part in parts))

    @cached_property
    def counted_rows(self) -> frozenset[int]:
        """The rows of a batch that this process counts; if several processes hold a row, the first copy's does."""
        rows = np.arange(self.batch_rows)
        shards = jax.make_array_from_callback(rows.shape, self.by_rows, rows.__getitem__).addressable_shards
        return frozenset(chain.from_iterable(self._rows(shard.index) for shard in shards if shard.replica_id == 0))

    def _rows(self, index: tuple[slice, ...] | None) -> range:
        return range(self.batch_rows)[index[0] if index else slice(None)]

    def place(self, batch: Batch) -> Batch:
        """The global batch; ``batch`` holds the local rows, and each device gets its own rows."""

        def place_array(rows: np.ndarray) -> jax.Array:
            def part(index: tuple[slice, ...] | None) -> np.ndarray:
                mine, first = self._rows(index), self.local_rows.start
                return rows[mine.start - first : mine.stop - first]

            return jax.make_array_from_callback((self.batch_rows, *rows.shape[1:]), self.by_rows, part)

        return Batch(*map(place_array, batch))

    def batch_shapes(self, source_length: int, target_length: int) -> Batch:
        """The shapes, dtypes and shardings of a placed batch with rows of these lengths."""
        shape = partial(jax.ShapeDtypeStruct, dtype=np.int32, sharding=self.by_rows)
        lengths = (source_length if name.startswith("source") else target_length for name in Batch._fields)
        return Batch(*(shape((self.batch_rows, length)) for length in lengths))

    def __str__(self) -> str:
        """The kind of device; with several, their number and how they share the work."""
        kind = str(self.mesh.devices.flat[0].device_kind)
        if self.mesh.size == 1:
            return kind
        axes = ", ".join(f"{name} {size}" for name, size in self.mesh.shape.items() if size > 1)
        processes = f" in {jax.process_count()} processes" if jax.process_count() > 1 else ""
        return f"{self.mesh.size} × {kind} ({axes}){processes}"


def abstract_state(mesh: Mesh, model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """Shapes, dtypes and shardings of a training state: moments and averages are sharded like their parameters."""
    everywhere = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec()))
    shapes = state_shapes(model, training, vocab_size)
    state: TrainState = jax.tree.map(lambda leaf: everywhere(leaf.shape, leaf.dtype), shapes)

    def shard(parameter: nnx.Param) -> jax.ShapeDtypeStruct:
        spec = parameter_spec(mesh, parameter.get_metadata("axes"), parameter.shape)
        return jax.ShapeDtypeStruct(parameter.shape, parameter.dtype, sharding=NamedSharding(mesh, spec))

    variables = structure(model, vocab_size)[1]
    params = nnx.to_pure_dict(jax.tree.map(shard, variables, is_leaf=lambda node: isinstance(node, nnx.Param)))
    opt_state = shard_optimizer(optimizer(training), state.opt_state, params)
    return state._replace(params=params, opt_state=opt_state, averaged=None if state.averaged is None else params)


def shard_optimizer(
    transform: optax.GradientTransformation, opt_state: optax.OptState, params: Params
) -> optax.OptState:
    """The optimizer's state with parameter-shaped arrays sharded like their parameter, and all others unchanged."""

    def is_masked(node: Any) -> bool:  # muon and adam have some of the parameters each
        return isinstance(node, optax.MaskedNode)

    def place(leaf: Any, param: jax.ShapeDtypeStruct) -> Any:
        return leaf if is_masked(leaf) or leaf.shape != param.shape else leaf.update(sharding=param.sharding)

    return optax.tree.map_params(transform, place, opt_state, params, is_leaf=is_masked)


def compile_initial_state(
    like: TrainState, model: ModelConfig, training: TrainingConfig, vocab_size: int, params: Params | None = None
) -> Callable[[], TrainState]:
    """``init_state`` on the devices of ``like``, compiled. Its arrays are allocated only when it is called.

    With ``params``, which every process must hold in full, the state before the first step with these parameters.
    """
    seed, shardings = np.uint32(training.seed), jax.tree.map(lambda leaf: leaf.sharding, like)
    if params is not None:
        begin = jax.jit(partial(initial_state_from, training=training), out_shardings=shardings)
        return partial(begin, jax.tree.map(np.asarray, params))
    seeded = partial(seeded_state, model, training, vocab_size)
    return partial(jax.jit(seeded, out_shardings=shardings).lower(seed).compile(), seed)
