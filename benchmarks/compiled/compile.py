"""Compile a program for a target, and gather what the compiler plans."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax

from benchmarks.compiled import hlo
from benchmarks.compiled.programs import Program
from benchmarks.compiled.targets import Target
from benchmarks.cost.transfers import Transfer
from common.errors import UserError

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TOO_LARGE = re.compile(r"Ran out of memory.*?([\d.]+)([KMGT])\b.*?([\d.]+)([KMGT])\b", re.DOTALL)  # needs, has


@dataclass(frozen=True)
class Compiled:
    """A compiled program, in bytes of one device, and what arithmetic expects of it."""

    name: str
    seconds: float  # to lower and compile
    held: int  # by arguments
    temporary: int
    peak: int
    not_donated: int  # that could have been written over
    collectives: list[dict[str, Any]]  # the fields of ``hlo.Collective``, and what is sent
    kernels: dict[str, int]
    products: dict[str, int]  # by their operands' dtypes
    expected: dict[str, Any]

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
    instructions = hlo.read_program(compiled.as_text())
    return Compiled(
        program.name,
        seconds,
        memory.argument_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.peak_memory_in_bytes,
        max(0, program.donated - memory.alias_size_in_bytes),
        with_sent(hlo.list_collectives(instructions)),
        hlo.count_kernels(instructions),
        dict(Counter(f"{left.dtype} · {right.dtype}" for left, right in hlo.list_products(instructions))),
        {"held": program.held, "transfers": with_sent(program.transfers)},
    )


def with_sent(collectives: Sequence[hlo.Collective] | Sequence[Transfer]) -> list[dict[str, Any]]:
    return [each._asdict() | {"sent": each.sent()} for each in collectives]


def describe_lack(name: str, target: Target, needed: float, has: float) -> str:
    """Return one line that says what does not fit, and what to change."""
    change = (
        "make decoding.batch_sentences or decoding.beam_size smaller"
        if name.startswith("search")
        else "make data.batch_rows smaller, training.accumulation larger, or set model.rematerialize=true or mesh.fsdp"
    )
    return (
        f"the {name} does not fit: it needs {needed / 1e9:.1f} GB on each device of {target.name}, "
        f"which has {has / 1e9:.1f} GB; {change}"
    )
