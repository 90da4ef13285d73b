"""Compile a program for a target, and gather what the compiler plans beside what arithmetic expects."""

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO

import jax

from benchmarks.compiled import hlo
from benchmarks.compiled.programs import Program
from benchmarks.compiled.targets import Target
from common.errors import UserError
from common.files import write_atomically

_TOO_LARGE = re.compile(r"Ran out of memory.*?([\d.]+)([KMGT])\b.*?([\d.]+)([KMGT])\b", re.DOTALL)  # needs, has
_MESSAGE = re.compile(r"^[WEF]\d{4} [\d:.]+\s+\d+ (\S+)\] (.*)$")
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class Sum:
    """Collectives of one kind, dtype and number of devices: how many a run executes, and their bytes."""

    kind: str
    dtype: str
    devices: int
    times: int
    bytes: int  # that a device puts in
    sent: float  # that a device sends around a ring


@dataclass(frozen=True)
class Compiled:
    """A compiled program. Bytes and operations are those of one device."""

    name: str
    seconds: float  # to lower and compile
    held: int  # bytes of arguments
    temporary: int
    peak: int
    not_donated: int  # bytes that could have been written over
    operations: int  # of matrix products, without those in calls of libraries
    collectives: list[Sum]
    kernels: dict[str, int]
    products: dict[str, int]  # by their operands' dtypes
    wide_products: list[str]  # of float32 operands
    moved: dict[str, int]  # bytes moved by copies and transposes
    rematerialized: int
    messages: dict[str, int]  # the compiler's warnings, and how often


def compile_program(program: Program, target: Target, text_folder: Path | None = None) -> Compiled:
    """Compile; UserError if the compiler finds that the program needs more memory than the device has.

    The compiled program is kept in ``text_folder`` as HLO text.
    """
    begun = perf_counter()
    with target.tracing(), captured_messages() as file:
        try:
            compiled: Any = program.lower().compile()
        except jax.errors.JaxRuntimeError as error:
            raise _explain(error, program, target, read_messages(file)) from error
        messages = read_messages(file)
    seconds, memory = perf_counter() - begun, compiled.memory_analysis()
    text = compiled.as_text()
    if text_folder:
        write_atomically(text_folder / f"{program.name}.hlo.txt", text)
    read = hlo.read_program(text)
    products = read.products()
    return Compiled(
        program.name,
        seconds,
        memory.argument_size_in_bytes,
        memory.temp_size_in_bytes,
        memory.peak_memory_in_bytes,
        max(0, program.donated - memory.alias_size_in_bytes),
        sum(product.operations for product in products),
        add_up(read.collectives()),
        read.kernels(),
        dict(Counter(f"{product.left.dtype} · {product.right.dtype}" for product in products)),
        [str(product) for product in products if "f32" in (product.left.dtype, product.right.dtype)],
        {opcode: read.moved(opcode) for opcode in ("copy", "transpose")},
        read.rematerialized(),
        messages,
    )


def add_up(collectives: list[hlo.Collective]) -> list[Sum]:
    """Collectives of equal kind, dtype and number of devices together."""
    groups: dict[tuple[str, str, int], list[hlo.Collective]] = {}
    for collective in collectives:
        groups.setdefault((collective.kind, collective.dtype, collective.devices), []).append(collective)
    return [
        Sum(
            *key,
            sum(one.times for one in group),
            sum(one.times * one.bytes for one in group),
            sum(one.sent() for one in group),
        )
        for key, group in groups.items()
    ]


@contextmanager
def captured_messages() -> Iterator[BinaryIO]:
    """Take what the compiler writes to standard error into a file."""
    usual = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield file
        finally:
            os.dup2(usual, 2)
            os.close(usual)


def read_messages(file: BinaryIO) -> dict[str, int]:
    """The warnings and errors among the compiler's messages, without numbers that differ, by how often they came."""
    file.seek(0)
    found = [_MESSAGE.match(line) for line in file.read().decode(errors="replace").splitlines()]
    return dict(Counter(f"{match[1].partition(':')[0]}: {match[2]}" for match in found if match))


def _explain(error: Exception, program: Program, target: Target, messages: dict[str, int]) -> Exception:
    if too_large := _TOO_LARGE.search(str(error)):
        used, has = (float(too_large[i]) * UNITS[too_large[i + 1]] for i in (1, 3))
        return UserError(describe_lack(program.name, target, used, has))
    error.add_note("\n".join(messages))
    return error


def describe_lack(name: str, target: Target, needed: float, has: float) -> str:
    """One line that says what does not fit, and what to change."""
    change = (
        "make decoding.batch_sentences or decoding.beam_size smaller"
        if name.startswith("search")
        else "make data.batch_rows smaller, training.accumulation larger, or set model.rematerialize=true or mesh.fsdp"
    )
    return (
        f"the {name} does not fit: it needs {needed / 1e9:.1f} GB on each device of {target.name}, "
        f"which has {has / 1e9:.1f} GB; {change}"
    )
