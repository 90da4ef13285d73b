"""What a config asks of the machine, before any of it is spent."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from data.batches.packing import Batch
from data.config import DataConfig
from data.prepare import Prepared
from model.config import ModelConfig
from model.sharding import ROWS, mesh_of
from model.transformer import Params, build
from training.config import TrainingConfig
from training.devices.mesh import laid_out, layout_of, mesh_in_words
from training.devices.preflight import choose_kernels
from training.state import TrainState, init_state, make_train_step


def summary(model: ModelConfig, training: TrainingConfig, data: DataConfig, vocab_size: int, mesh: Mesh) -> str:
    """Parameters by module, tokens a step and the memory of the compiled training step, as lines of text."""
    chosen = choose_kernels(model, (data.row_length, data.row_length))
    state = jax.eval_shape(lambda: init_state(model, training, vocab_size))
    rows = [*_modules(state.params), ("total", _size(state.params))]
    lines = [f"{name:<40} {size:>14,}" for name, size in rows]
    tokens = data.batch_rows * data.row_length
    layout = layout_of(mesh, model, training, vocab_size)
    memory = _memory(laid_out(layout, model, training, vocab_size), layout, model, training, data, vocab_size)
    return "\n".join(
        [
            f"{'parameters by module':<40} {'parameters':>14}",
            *lines,
            f"tokens a step        up to {tokens:,} source + {tokens:,} target in {data.batch_rows} rows",
            f"memory               about {memory / 2**30:.2f} GiB: parameters, optimizer, averages and activations,",
            f"                     {'on each device, ' if mesh.size > 1 else ''}as compiled for {mesh_in_words(mesh)}",
            f"attention kernels    {', '.join(f'{kernel} in {use}' for use, kernel in chosen.items())}",
        ]
    )


def _modules(params: Params) -> Iterator[tuple[str, int]]:
    for name, part in params.items():
        for child, leaves in part.items():
            yield f"{name}.{child}", _size(leaves)


def _size(tree: Params) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _memory(
    state: TrainState,
    layout: TrainState,
    model: ModelConfig,
    training: TrainingConfig,
    data: DataConfig,
    vocab_size: int,
) -> int:
    by_rows = NamedSharding(mesh_of(layout), PartitionSpec(ROWS))
    rows = jax.ShapeDtypeStruct((data.batch_rows, data.row_length), jnp.int32, sharding=by_rows)
    step: Any = make_train_step(build(model, vocab_size), training, layout)
    analysis = step.lower(state, Batch(*(rows for _ in Batch._fields))).compile().memory_analysis()
    return analysis.argument_size_in_bytes + analysis.temp_size_in_bytes


def corpus_in_words(prepared: Prepared) -> str:
    """The training data in a line."""
    report = prepared.report
    dropped = ", ".join(f"{count} {reason}" for reason, count in asdict(report.dropped).items() if count)
    source = f"{report.row_lengths.source} ({report.fill.source:.1%} real)"
    target = f"{report.row_lengths.target} ({report.fill.target:.1%} real)"
    return f"{report.training_pairs:,} pairs (dropped: {dropped or 'none'}) in rows of {source} + {target} tokens"
