"""Compile a config's training step for a target, and return the memory that the compiler plans."""

import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax
from jax.sharding import Mesh

from benchmarks.compiled.targets import Target
from common.errors import UserError
from configs.schema import RunConfig
from model.transformer import build
from training.devices.mesh import Devices, abstract_state, check_divisible
from training.devices.preflight import choose_kernels
from training.step import make_train_step

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TOO_LARGE = re.compile(r"Ran out of memory.*?([\d.]+)([KMGT])\b.*?([\d.]+)([KMGT])\b", re.DOTALL)  # needs, has


@dataclass(frozen=True)
class Compiled:
    """A compiled training step; sizes are bytes on one device."""

    seconds: float  # to lower and compile
    held: int  # by arguments
    written_over: int  # part of the arguments that results overwrite
    temporary: int
    peak: int


def compile_step(config: RunConfig, mesh: Mesh, target: Target) -> Compiled:
    """Compile for a mesh of the target's devices.

    UserError if the kernel cannot compute the model, if the mesh does not divide the sizes of the config, or if the
    compiler finds that the step needs more memory than a device has; NVIDIA's compiler does not check this (see
    ``check_fits``).
    """
    begun = perf_counter()
    with target.tracing():
        choose_kernels(config.model, (config.data.row_length, config.data.row_length))
        try:
            compiled = _lower_step(config, mesh).compile()
        except jax.errors.JaxRuntimeError as error:
            if not (found := _TOO_LARGE.search(str(error))):
                raise
            needed, has = (float(found[i]) * UNITS[found[i + 1]] for i in (1, 3))
            raise _too_large(target, needed, has) from error
    seconds, memory = perf_counter() - begun, compiled.memory_analysis()
    held, written_over, temporary = memory.argument_size_in_bytes, memory.alias_size_in_bytes, memory.temp_size_in_bytes
    return Compiled(seconds, held, written_over, temporary, memory.peak_memory_in_bytes)


def _lower_step(config: RunConfig, mesh: Mesh) -> Any:
    model, training, vocab_size = config.model, config.training, config.tokenizer.vocab_size
    rows, length = config.data.batch_rows, config.data.row_length
    check_divisible(mesh, model, rows, training.accumulation)
    state = abstract_state(mesh, model, training, vocab_size)
    step: Any = make_train_step(build(model, vocab_size), training, state)
    return step.lower(state, Devices(mesh, rows).batch_shapes(length, length))


def check_fits(step: Compiled, target: Target) -> None:
    """UserError if a device has less memory than the step's peak."""
    if step.peak > target.accelerator.memory:
        raise _too_large(target, step.peak, target.accelerator.memory)


def _too_large(target: Target, needed: float, has: float) -> UserError:
    sizes = f"{needed / 1e9:.1f} GB on each device of {target.name}, which has {has / 1e9:.1f} GB"
    change = "make data.batch_rows smaller, training.accumulation larger, or set model.rematerialize=true or mesh.fsdp"
    return UserError(f"the training step does not fit: it needs {sizes}; {change}")
