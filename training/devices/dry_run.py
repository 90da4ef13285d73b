"""What a training would take, found without training: parameters, tokens a step, memory, kernels."""

from collections.abc import Iterator
from typing import Any

import jax

from data.config import DataConfig
from model.config import ModelConfig
from model.transformer import Params, build
from training.config import TrainingConfig
from training.devices.mesh import Devices, abstract_state
from training.devices.preflight import choose_kernels
from training.step import make_train_step


def dry_run_summary(
    model: ModelConfig, training: TrainingConfig, data: DataConfig, vocab_size: int, devices: Devices
) -> str:
    """Parameters by module, tokens a step, memory of the compiled training step, and kernels, as lines of text."""
    kernels = choose_kernels(model, (data.row_length, data.row_length))
    params = abstract_state(devices.mesh, model, training, vocab_size).params
    rows = [*_modules(params), ("total", _size(params))]
    lines = [f"{name:<40} {size:>14,}" for name, size in rows]
    tokens = data.batch_rows * data.row_length
    memory = _memory(model, training, data, vocab_size, devices)
    return "\n".join(
        [
            f"{'parameters by module':<40} {'parameters':>14}",
            *lines,
            f"tokens a step        up to {tokens:,} source + {tokens:,} target in {data.batch_rows} rows",
            f"memory               about {memory / 2**30:.2f} GiB: parameters, optimizer, averages and activations,",
            f"                     {'on each device, ' if devices.mesh.size > 1 else ''}as compiled for {devices}",
            f"attention kernels    {', '.join(f'{kernel} in {use}' for use, kernel in kernels.items())}",
        ]
    )


def _modules(params: Params) -> Iterator[tuple[str, int]]:
    for name, part in params.items():
        for child, leaves in part.items():
            yield f"{name}.{child}", _size(leaves)


def _size(tree: Params) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def _memory(model: ModelConfig, training: TrainingConfig, data: DataConfig, vocab_size: int, devices: Devices) -> int:
    """Bytes on each device that the compiled training step takes."""
    like = abstract_state(devices.mesh, model, training, vocab_size)
    batch = devices.batch_shapes(data.row_length, data.row_length)
    step: Any = make_train_step(build(model, vocab_size), training, like)
    analysis = step.lower(like, batch).compile().memory_analysis()
    return int(analysis.argument_size_in_bytes + analysis.temp_size_in_bytes)
