"""What a run executes on its devices: the training step, the loss of validation, and a search. Shapes only."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.cost.operations import FLOAT, StepCost
from benchmarks.cost.transfers import Layout, Transfer, list_transfers, state_bytes
from evaluation.translate import batch_size, bucket_of, search_batch, search_settings
from model.config import DecodingConfig
from model.transformer import build
from training.config import TrainingConfig
from training.devices.mesh import Devices, abstract_state, check_divisible
from training.step import make_loss_step, make_train_step

# Bytes of a training state's counts: of steps, sums and skipped updates. With Muon, two optimizers count updates.
COUNTS = {"adam": 13 * FLOAT, "adamw": 13 * FLOAT, "muon": 14 * FLOAT}


@dataclass(frozen=True)
class Program:
    """A jitted function on shapes, and what arithmetic expects of it on one device; None where there is no formula."""

    name: str
    lower: Callable[[], jax.stages.Lowered]
    donated: int = 0  # bytes of arguments that may be written over
    held: int | None = None  # bytes of all arguments
    transfers: list[Transfer] = field(default_factory=list)


@dataclass(frozen=True)
class Workload:
    """What a config computes on a mesh: steps of ``cost`` in training, and searches."""

    cost: StepCost
    training: TrainingConfig
    decoding: DecodingConfig
    mesh: Mesh


def list_programs(workload: Workload) -> list[Program]:
    """Return the programs of a run. UserError if the mesh does not divide the sizes of the config."""
    cost, training, mesh = workload.cost, workload.training, workload.mesh
    check_divisible(mesh, cost.model, cost.rows, training.accumulation)
    layout = Layout(*(mesh.shape[axis] for axis in mesh.axis_names))
    graphdef, state = build(cost.model, cost.vocab_size), abstract_state(mesh, cost.model, training, cost.vocab_size)
    batch = Devices(mesh, cost.rows).batch_shapes(cost.sources, cost.targets)
    step: Any = make_train_step(graphdef, training, state)
    loss: Any = make_loss_step(graphdef, training.label_smoothing, mesh)
    held = state_bytes(cost, training, layout) + COUNTS[training.optimizer]
    # Tokens, segments and positions, and of targets also what the decoder is fed.
    batch_bytes = FLOAT * cost.rows // layout.row_groups * (3 * cost.sources + 4 * cost.targets)
    transfers = list_transfers(cost, training, layout)
    return [
        Program("training step", partial(step.lower, state, batch), held, held + batch_bytes, transfers),
        Program("validation loss", partial(loss.lower, state.inference_params, batch)),
        _search(workload, state.params),
    ]


def _search(workload: Workload, params: Any) -> Program:
    """The search of the longest sources that are translated in one piece; each device has as many as a single one."""
    cost, decoding, mesh = workload.cost, workload.decoding, workload.mesh
    model = replace(cost.model, kernel="definition")
    bucket = bucket_of(decoding.max_source_tokens or cost.sources)
    rows = batch_size(bucket, decoding.batch_sentences)
    shared = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec()))
    divided = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec(mesh.axis_names)))
    lower = partial(
        search_batch.lower,
        (build(model, cost.vocab_size),),
        (jax.tree.map(lambda leaf: shared(leaf.shape, leaf.dtype), params),),
        divided((rows * mesh.size, bucket), np.int32),
        divided((rows * mesh.size,), np.int32),
        None,
        divided((rows * mesh.size,), np.uint32),
        shared((), np.uint32),
        search_settings(decoding, decoding.limit(bucket), 1),
        mesh if mesh.size > 1 else None,
    )
    return Program(f"search of {rows} × {bucket} tokens a device, {decoding.beam_size} beams", lower)
