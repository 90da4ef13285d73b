"""What a run executes on its devices: the training step, the loss of validation, and a search. Shapes only."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.cost.operations import FLOAT, StepCost, cache_values, search_step_operations
from benchmarks.cost.scaling import DTYPE_BYTES, Layout, Transfer, list_transfers, state_bytes, temporary_bytes
from configs.schema import RunConfig
from data.batches.packing import Batch
from evaluation.translate import batch_size, bucket_of, search_batch, search_settings
from model.transformer import build
from training.devices.mesh import Devices, abstract_state, check_divisible
from training.state import TrainState
from training.step import make_loss_step, make_train_step

COUNTS = 12 * FLOAT  # bytes of a training state's counts: of steps, sums and skipped updates


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


def list_programs(config: RunConfig, mesh: Mesh) -> list[Program]:
    """The programs of a run of this config on this mesh. UserError if the mesh does not divide the config's sizes."""
    check_divisible(mesh, config.model, config.data.batch_rows, config.training.accumulation)
    model, vocab_size, length = config.model, config.tokenizer.vocab_size, config.data.row_length
    state = abstract_state(mesh, model, config.training, vocab_size)
    batch = Devices(mesh, config.data.batch_rows).batch_shapes(length, length)
    cost = StepCost(model, vocab_size, config.data.batch_rows, length, length)
    layout = Layout(*(mesh.shape[axis] for axis in mesh.axis_names))
    return [
        _training_step(config, state, batch, cost, layout),
        _validation_loss(config, mesh, state, batch, cost, layout),
        _search(config, mesh, cost, layout),
    ]


def _training_step(config: RunConfig, state: TrainState, batch: Batch, cost: StepCost, layout: Layout) -> Program:
    step: Any = make_train_step(build(cost.model, cost.vocab_size), config.training, state)
    held = state_bytes(cost, config.training, layout) + COUNTS
    expected = Expected(
        held + batch_bytes(cost, layout),
        temporary_bytes(cost, config.training, layout),
        cost.flops() / layout.devices,
        list_transfers(cost, config.training, layout),
    )
    return Program("training step", partial(step.lower, state, batch), held, expected)


def _validation_loss(
    config: RunConfig, mesh: Mesh, state: TrainState, batch: Batch, cost: StepCost, layout: Layout
) -> Program:
    loss: Any = make_loss_step(build(cost.model, cost.vocab_size), config.training.label_smoothing, mesh)
    held = state_bytes(cost, config.training, layout) // (4 if config.training.ema_decay else 3)
    expected = Expected(held + batch_bytes(cost, layout), None, cost.flops() / 3 / layout.devices, [])
    return Program("validation loss", partial(loss.lower, state.inference_params, batch), 0, expected)


def _search(config: RunConfig, mesh: Mesh, cost: StepCost, layout: Layout) -> Program:
    """The search of the longest sources that are translated in one piece, with its rows divided like a batch's."""
    model, decoding = replace(cost.model, kernel="definition"), config.decoding
    bucket = bucket_of(decoding.max_source_tokens or config.data.row_length)
    rows, room = batch_size(bucket, decoding.batch_sentences), decoding.limit(bucket)
    everywhere = NamedSharding(mesh, PartitionSpec())
    shape = partial(jax.ShapeDtypeStruct, sharding=everywhere)
    parameters = abstract_state(mesh, model, config.training, cost.vocab_size).params
    parameters = jax.tree.map(lambda leaf: shape(leaf.shape, leaf.dtype), parameters)

    def lower() -> jax.stages.Lowered:
        with _use(mesh):
            return search_batch.lower(
                (build(model, cost.vocab_size),),
                (parameters,),
                shape((rows, bucket), np.int32),
                shape((rows,), np.int32),
                None,
                shape((rows,), np.uint32),
                shape((), np.uint32),
                search_settings(decoding, room, 1),
            )

    numbers = rows + 1 if decoding.draws else 0  # of sentences, and the seed
    held = FLOAT * (cost.parameters() + rows * (bucket + 1) + numbers)
    local = rows // layout.row_groups if rows % layout.row_groups == 0 else rows
    operations = local * search_step_operations(model, cost.vocab_size, bucket, room, decoding.beam_size)
    caches = DTYPE_BYTES[model.dtype] * local * cache_values(model, bucket, decoding.beam_size * room)
    name = f"search of {rows} × {bucket} tokens, {decoding.beam_size} beams"
    return Program(name, lower, 0, Expected(held, caches, float(operations), []))


def _use(mesh: Mesh) -> AbstractContextManager[Any]:
    return jax.sharding.use_abstract_mesh(mesh.abstract_mesh)


def batch_bytes(cost: StepCost, layout: Layout) -> int:
    """The bytes of a batch on one device: tokens, segments and positions, and of targets also what they are fed."""
    return FLOAT * cost.rows // layout.row_groups * (3 * cost.sources + 4 * cost.targets)
