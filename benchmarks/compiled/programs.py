"""What a run executes on its devices: the training step, the loss of validation, and a search. Shapes only."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.cost.operations import FLOAT, StepCost, cache_values, search_step_operations
from benchmarks.cost.scaling import (
    DTYPE_BYTES,
    PARAMETERS,
    Layout,
    Transfer,
    list_transfers,
    parameter_bytes,
    parameter_transfers,
    state_bytes,
    temporary_bytes,
)
from data.batches.packing import Batch
from evaluation.translate import batch_size, bucket_of, search_batch, search_settings
from model.config import DecodingConfig
from model.transformer import Transformer, build
from training.config import TrainingConfig
from training.devices.mesh import Devices, abstract_state, check_divisible
from training.state import TrainState
from training.step import make_loss_step, make_train_step

# Bytes of a training state's counts: of steps, sums and skipped updates. With Muon, two optimizers count updates.
COUNTS = {"adam": 13 * FLOAT, "adamw": 13 * FLOAT, "muon": 14 * FLOAT}


@dataclass(frozen=True)
class Expected:
    """What arithmetic expects of a program on one device; None where there is no formula."""

    held: int  # bytes of its arguments
    temporary: int | None
    operations: float  # of matrix products; of a search, without a loop: the encoder and one step
    transfers: list[Transfer]


@dataclass(frozen=True)
class Program:
    """A jitted function with the shapes of its arguments, which a target's compiler can compile."""

    name: str
    lower: Callable[[], jax.stages.Lowered]
    donated: int  # bytes that may be written over
    expected: Expected


@dataclass(frozen=True)
class Workload:
    """What a config computes on a mesh: steps of ``cost`` in training, and searches."""

    cost: StepCost
    training: TrainingConfig
    decoding: DecodingConfig
    mesh: Mesh

    @property
    def layout(self) -> Layout:
        return Layout(*(self.mesh.shape[axis] for axis in self.mesh.axis_names))

    def state(self) -> TrainState:
        return abstract_state(self.mesh, self.cost.model, self.training, self.cost.vocab_size)

    def batch(self) -> Batch:
        return Devices(self.mesh, self.cost.rows).batch_shapes(self.cost.sources, self.cost.targets)

    def graphdef(self) -> nnx.GraphDef[Transformer]:
        return build(self.cost.model, self.cost.vocab_size)

    def batch_bytes(self) -> int:
        """On one device: tokens, segments and positions, and of targets also what the decoder is fed."""
        numbers = 3 * self.cost.sources + 4 * self.cost.targets
        return FLOAT * self.cost.rows // self.layout.row_groups * numbers


def list_programs(workload: Workload) -> list[Program]:
    """The programs of a run. UserError if the mesh does not divide the sizes of the config."""
    cost, training = workload.cost, workload.training
    check_divisible(workload.mesh, cost.model, cost.rows, training.accumulation)
    return [training_step(workload), validation_loss(workload), search(workload)]


def training_step(workload: Workload) -> Program:
    cost, training, layout = workload.cost, workload.training, workload.layout
    state = workload.state()
    step: Any = make_train_step(workload.graphdef(), training, state)
    held = state_bytes(cost, training, layout) + COUNTS[training.optimizer]
    expected = Expected(
        held + workload.batch_bytes(),
        temporary_bytes(cost, training, layout),
        cost.of_views(training).flops() / layout.devices + cost.optimizer_flops(training),
        list_transfers(cost, training, layout),
    )
    return Program("training step", partial(step.lower, state, workload.batch()), held, expected)


def validation_loss(workload: Workload) -> Program:
    cost, layout = workload.cost, workload.layout
    loss: Any = make_loss_step(workload.graphdef(), workload.training.label_smoothing, workload.mesh)
    held = parameter_bytes(cost, layout) + workload.batch_bytes()
    gathers = [transfer for transfer in parameter_transfers(cost, layout) if transfer.content == PARAMETERS]
    arguments = workload.state().inference_params, workload.batch()
    expected = Expected(held, None, cost.flops() / 3 / layout.devices, gathers)
    return Program("validation loss", partial(loss.lower, *arguments), 0, expected)


def search(workload: Workload) -> Program:
    """The search of the longest sources that are translated in one piece; each device has as many as a single one."""
    cost, decoding, mesh = workload.cost, workload.decoding, workload.mesh
    model = replace(cost.model, kernel="definition")
    bucket = bucket_of(decoding.max_source_tokens or cost.sources)
    rows, room = batch_size(bucket, decoding.batch_sentences), decoding.limit(bucket)
    shared = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec()))
    divided = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec(mesh.axis_names)))
    lower = partial(
        search_batch.lower,
        (build(model, cost.vocab_size),),
        (jax.tree.map(lambda leaf: shared(leaf.shape, leaf.dtype), workload.state().params),),
        divided((rows * mesh.size, bucket), np.int32),
        divided((rows * mesh.size,), np.int32),
        None,
        divided((rows * mesh.size,), np.uint32),
        shared((), np.uint32),
        search_settings(decoding, room, 1),
        mesh if mesh.size > 1 else None,
    )
    numbers = rows + 1 if decoding.draws else 0  # of sentences, and the seed
    held = FLOAT * (cost.parameters() + rows * (bucket + 1) + numbers)
    operations = rows * search_step_operations(model, cost.vocab_size, bucket, room, decoding.beam_size)
    caches = DTYPE_BYTES[model.dtype] * rows * cache_values(model, bucket, decoding.beam_size * room)
    name = f"search of {rows} × {bucket} tokens a device, {decoding.beam_size} beams"
    return Program(name, lower, 0, Expected(held, caches, float(operations), []))
