"""Report a measurement, with speeds relative to a reference and to the machine, as a table and as JSON."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import Any, Generic

import jax

from benchmarks.machine import processor
from benchmarks.peers import installed_versions
from benchmarks.turns import Contestant, Results, Workload, matrix_size
from common.processor import count_cores
from common.text_table import Table, three_digits
from model.config import ModelConfig
from training.run.environment import describe_environment


@dataclass(frozen=True)
class Row(Generic[Workload]):
    """One call of a contestant in its best round, compared with the contestant ``ratio_to`` on the same workload."""

    contestant: Contestant[Workload]
    call: Any  # its name
    milliseconds: float
    flops: int  # operations of the matrix products in a call, counted by formula
    amount: int | float = 1  # sentences or tokens in a call
    facts: Any = None
    ratio: float = 1.0  # of amounts per second
    ratio_to: str = ""

    @property
    def per_second(self) -> float:
        return 1e3 * self.amount / self.milliseconds

    @property
    def flops_per_second(self) -> float:
        return 1e3 * self.flops / self.milliseconds

    def speed_cells(self, rates: Mapping[str, float], *, bfloat16: bool = False) -> list[str]:
        """Return the cells for ratio, FLOP/s and share of the machine's rate."""
        speed, rate = self.flops_per_second, best_rate(rates, bfloat16=bfloat16)
        return [f"{self.ratio:.2f}", three_digits(speed / flops_unit(rates)[1]), f"{speed / rate:.0%}"]

    def as_json(self) -> dict[str, Any]:
        """Return all figures, and what they measure."""
        return asdict(self) | {"per_second": self.per_second, "flops_per_second": self.flops_per_second}


def with_ratios(rows: Sequence[Row[Workload]], preferred: Sequence[str]) -> list[Row[Workload]]:
    """Compare rows with the same workload and call with the first ``preferred`` contestant among them, or the first."""
    references: dict[tuple[str, Any], Row[Workload]] = {}
    for row in sorted(rows, key=lambda row: [row.contestant.name != name for name in preferred]):
        references.setdefault((str(row.contestant.workload), row.call), row)
    pairs = [(row, references[str(row.contestant.workload), row.call]) for row in rows]
    return [replace(a, ratio=a.per_second / b.per_second, ratio_to=b.contestant.name) for a, b in pairs]


def best_rate(rates: Mapping[str, float], *, bfloat16: bool = False) -> float:
    """Return the FLOP/s of the fastest matrix product; with ``bfloat16``, of its operands if they were measured."""
    narrow = {name: rate for name, rate in rates.items() if name.endswith("bfloat16")}
    usual = [rate for name, rate in rates.items() if name not in narrow]
    return max(narrow.values() if bfloat16 and narrow else usual)


def flops_unit(rates: Mapping[str, float]) -> tuple[str, float]:
    """Return a unit of FLOP/s that fits a CPU or a GPU, and its size."""
    return ("TFLOP/s", 1e12) if max(rates.values(), default=0) >= 1e13 else ("GFLOP/s", 1e9)


def mebibytes(size: int | None, digits: int) -> str:
    """Return the cell for a size, empty for None."""
    return "" if size is None else f"{size / 2**20:,.{digits}f}"


def describe_model(model: ModelConfig, vocab_size: int) -> str:
    """Return the dimensions that determine a model's cost."""
    layers = f"{model.encoder_layers} + {model.decoder_layers} layers of width {model.d_model}"
    return f"{layers}, vocabulary {vocab_size:,}, {model.dtype}"


@dataclass(frozen=True)
class Report:
    """A table to print, and a JSON object with all figures and the circumstances of the measurement."""

    table: Table
    json: dict[str, Any]


def create_report(
    results: Results[Any],
    title: str,
    what: str,
    header: list[str],
    cells: list[list[str]],
    rows: Sequence[Row[Any]],
    costs: str = "",
) -> Report:
    """Return the cells as a table without empty columns, with a note on the measurement, and the rows as JSON."""
    unit, size = flops_unit(results.rates)
    reached = ", ".join(f"{name} {rate / size:.0f}" for name, rate in results.rates.items())
    products = f"Products of {matrix_size()[0]} × {matrix_size()[0]} matrices, {unit}: {reached}." if reached else ""
    against = ", ".join(dict.fromkeys(row.ratio_to for row in rows))
    cores = f"{count_cores()} core{'s' * (count_cores() > 1)} of {processor()}"
    machine = cores if jax.default_backend() == "cpu" else jax.devices()[0].device_kind
    summary = f"{what} on {machine}; best of {results.rounds}; ratio to {against}."
    used = [any(column) for column in zip(*cells, strict=True)]
    header, *cells = (list(compress(row, used)) for row in [header, *cells])
    table = Table(title, " ".join(filter(None, [summary, costs, products])), header, cells)
    circumstances = {
        "command": shlex.join(["python", "scripts/benchmark.py", *sys.argv[1:]]),
        "processor": processor(),
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", ""),
        "environment": describe_environment(),
        "rounds": results.rounds,
        "matrix_flops_per_second": results.rates,
    }
    figures = {"rows": [row.as_json() for row in rows], "notes": results.notes()}
    return Report(table, circumstances | installed_versions() | figures)
