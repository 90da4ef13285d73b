"""Checks before the first step: whether the config fits this machine and corpus, and what resources it needs."""

import math
import os
from typing import Any

import jax

from attention.kernels import KernelError, kernel_for
from attention.kernels.request import Request, current_device
from common.errors import UserError
from data.batches.packing import Batch
from data.config import DataConfig
from model.config import POSITIONS, ModelConfig
from model.transformer import build
from training.config import TrainingConfig
from training.devices.mesh import Devices, abstract_state
from training.state import TrainState
from training.step import make_train_step


def choose_kernels(config: ModelConfig, row_lengths: tuple[int, int]) -> dict[str, str]:
    """The kernel for each use of attention, given the source and target row lengths; UserError if none fits."""
    source, target = row_lengths
    has_bias = POSITIONS[config.positions] == "bias on scores"

    def kernel(queries: int, keys: int, bias: bool) -> str:
        sizes = queries, keys, config.head_dim, config.value_width
        request = Request(current_device(), config.dtype, config.score, *sizes, bias, config.attention_dropout > 0)
        return kernel_for(config.kernel, request)

    try:
        return {
            "encoder self-attention": kernel(source, source, has_bias),
            "decoder self-attention": kernel(target, target, has_bias),
            "encoder-decoder attention": kernel(target, source, False),
        }
    except KernelError as error:
        raise UserError(f"model.kernel={config.kernel}: {error}") from None


def check_position_table(config: ModelConfig, row_lengths: tuple[int, int], validation: list[Batch]) -> None:
    """UserError if a training row or a validation sentence is longer than the table of learned positions."""
    if config.positions != "learned":
        return
    sentences = [int(max(batch.source_positions.max(), batch.target_positions.max())) + 1 for batch in validation]
    longest = max(*row_lengths, *sentences)
    if longest > config.max_positions:
        problem = f"model.max_positions={config.max_positions} ends before the longest row or validation sentence"
        raise UserError(f"{problem}: set it to {longest} or more, or choose other model.positions")


def device_memory() -> int | None:
    """The bytes that JAX may use on a device, or the machine's memory on a CPU; None if unknown."""
    if statistics := jax.local_devices()[0].memory_stats():
        return statistics.get("bytes_limit")
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def check_memory(state: TrainState, limit: int | None) -> None:
    """UserError if a training state of these shapes and shardings does not fit in a device's memory."""
    parts = [(leaf.sharding.shard_shape(leaf.shape), leaf.dtype.itemsize) for leaf in jax.tree.leaves(state)]
    needed = sum(math.prod(shape) * size for shape, size in parts)
    if limit is not None and needed > limit:
        count = sum(leaf.size for leaf in jax.tree.leaves(state.params))
        problem = f"training {count:,} parameters needs {compare_memory(needed, limit)}"
        raise UserError(f"{problem}. Make tokenizer.vocab_size or the sizes in model smaller")


def compare_memory(needed: int, available: int | None) -> str:
    """Say how much memory is needed, and whether it is available."""
    text = f"about {needed / 2**30:.2f} GiB"
    if available is None:
        return text
    return f"{text} of {available / 2**30:.2f} GiB{': too much' * (needed > available)}"


def dry_run_summary(
    model: ModelConfig, training: TrainingConfig, data: DataConfig, vocab_size: int, devices: Devices
) -> str:
    """Parameters by module, tokens per step, memory of the compiled training step, and kernels, as lines of text."""
    kernels = choose_kernels(model, (data.row_length, data.row_length))
    like = abstract_state(devices.mesh, model, training, vocab_size)
    modules = {f"{name}.{child}": leaves for name, part in like.params.items() for child, leaves in part.items()}
    sizes = {name: sum(leaf.size for leaf in jax.tree.leaves(leaves)) for name, leaves in modules.items()}
    sizes["total"] = sum(sizes.values())
    tokens = data.batch_rows * data.row_length
    step: Any = make_train_step(build(model, vocab_size), training, like)
    batch = devices.batch_shapes(data.row_length, data.row_length)
    analysis = step.lower(like, batch).compile().memory_analysis()
    memory = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes  # on each device
    lines = [
        f"{'parameters by module':<40} {'parameters':>14}",
        *(f"{name:<40} {size:>14,}" for name, size in sizes.items()),
        f"tokens a step        up to {tokens:,} source + {tokens:,} target in {data.batch_rows} rows",
        f"memory               {compare_memory(memory, device_memory())}",
        "                     for parameters, optimizer, averages and activations,",
        f"                     {'on each device, ' if devices.mesh.size > 1 else ''}as compiled for {devices}",
        f"attention kernels    {', '.join(f'{kernel} in {use}' for use, kernel in kernels.items())}",
    ]
    return "\n".join(lines)
