"""Compile a program for a target, and return the memory that the compiler plans."""

import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax

from benchmarks.compiled.programs import Program
from benchmarks.compiled.targets import Target
from common.errors import UserError

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TOO_LARGE = re.compile(r"Ran out of memory.*?([\d.]+)([KMGT])\b.*?([\d.]+)([KMGT])\b", re.DOTALL)  # needs, has


@dataclass(frozen=True)
class Compiled:
    """A compiled program, in bytes of one device."""

    name: str
    seconds: float  # to lower and compile
    held: int  # by arguments
    written_over: int  # of the arguments, by results
    temporary: int
    peak: int

    def find_lack(self, target: Target) -> str | None:
        """Return why it does not fit on a device, which NVIDIA's compiler does not say; None if it does."""
        has = target.accelerator.memory
        return describe_lack(self.name, target, self.peak, has) if self.peak > has else None


def compile_program(program: Program, target: Target) -> Compiled:
    """Compile; UserError if the compiler finds that the program needs more memory than the device has."""
    begun = perf_counter()
    with target.tracing():
        try:
            compiled: Any = program.lower().compile()
        except jax.errors.JaxRuntimeError as error:
            if not (found := _TOO_LARGE.search(str(error))):
                raise
            needed, has = (float(found[i]) * UNITS[found[i + 1]] for i in (1, 3))
            raise UserError(describe_lack(program.name, target, needed, has)) from error
    seconds, memory = perf_counter() - begun, compiled.memory_analysis()
    held, written_over, temporary = memory.argument_size_in_bytes, memory.alias_size_in_bytes, memory.temp_size_in_bytes
    return Compiled(program.name, seconds, held, written_over, temporary, memory.peak_memory_in_bytes)


def describe_lack(name: str, target: Target, needed: float, has: float) -> str:
    """Return one line that says what does not fit, and what to change."""
    change = "make data.batch_rows smaller, training.accumulation larger, or set model.rematerialize=true or mesh.fsdp"
    if name.startswith("search"):
        change = "make decoding.batch_sentences or decoding.beam_size smaller"
    sizes = f"{needed / 1e9:.1f} GB on each device of {target.name}, which has {has / 1e9:.1f} GB"
    return f"the {name} does not fit: it needs {sizes}; {change}"
