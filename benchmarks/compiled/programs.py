"""What a run executes on its devices: the training step, the loss of validation, and a search. Shapes only."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from configs.schema import RunConfig
from evaluation.buckets import batch_size, bucket_of
from evaluation.search import search_batch, search_settings
from model.transformer import build
from training.devices.mesh import Devices, abstract_state, check_divisible
from training.step import make_loss_step, make_train_step


class Program(NamedTuple):
    """A jitted function on shapes."""

    name: str
    lower: Callable[[], jax.stages.Lowered]


def list_programs(config: RunConfig, mesh: Mesh) -> list[Program]:
    """Return the programs of a run. UserError if the mesh does not divide the sizes of the config."""
    model, training, vocab_size = config.model, config.training, config.tokenizer.vocab_size
    rows, length = config.data.batch_rows, config.data.row_length
    check_divisible(mesh, model, rows, training.accumulation)
    graphdef, state = build(model, vocab_size), abstract_state(mesh, model, training, vocab_size)
    step: Any = make_train_step(graphdef, training, state)
    loss: Any = make_loss_step(graphdef, training.label_smoothing, mesh)
    batch = Devices(mesh, rows).batch_shapes(length, length)
    return [
        Program("training step", partial(step.lower, state, batch)),
        Program("validation loss", partial(loss.lower, state.inference_params, batch)),
        _search(config, mesh, state.params),
    ]


def _search(config: RunConfig, mesh: Mesh, params: Any) -> Program:
    """The search of the longest sources that are translated in one piece; each device has as many as a single one."""
    decoding, model = config.decoding, replace(config.model, kernel="definition")
    bucket = bucket_of(decoding.max_source_tokens or config.data.row_length)
    rows = batch_size(bucket, decoding.batch_sentences)
    shared = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec()))
    divided = partial(jax.ShapeDtypeStruct, sharding=NamedSharding(mesh, PartitionSpec(mesh.axis_names)))
    all_rows = rows * mesh.size
    graphdefs = (build(model, config.tokenizer.vocab_size),)
    shapes = (jax.tree.map(lambda leaf: shared(leaf.shape, leaf.dtype), params),)
    sources, limits = divided((all_rows, bucket), np.int32), divided((all_rows,), np.int32)
    numbers, seed = divided((all_rows,), np.uint32), shared((), np.uint32)
    options = search_settings(decoding, decoding.limit(bucket), 1), mesh if mesh.size > 1 else None
    lower = partial(search_batch.lower, graphdefs, shapes, sources, limits, None, numbers, seed, *options)
    return Program(f"search of {rows} × {bucket} tokens a device, {decoding.beam_size} beams", lower)
