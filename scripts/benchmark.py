"""How fast this project is, beside others: python scripts/benchmark.py attention [options].

All contestants take turns in one run. Compare their ratios: the milliseconds are those of one machine on one day.
docs/benchmarks.md has figures, and says what bounds them.
"""

import argparse
import itertools
import json
import math
import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from attention import KERNELS
from data.card_text import Table, as_markdown, as_text
from data.errors import UserError, exit_on_user_error
from data.files import write_atomically
from training.attention_speed import Case, Row, add_peaks, measure
from training.environment import environment
from training.speed import matrix_products, matrix_size, processor, torch_if_installed, use_one_thread

ATTENTION = """Time attention, forward alone and with the gradients of query, key and value: every kernel of this
project that can serve, jax.nn.dot_product_attention called directly in its own layout, and PyTorch's
scaled_dot_product_attention where torch is installed (pip install -e '.[bench]').

On one thread of a CPU in float32; with --gpu on a GPU in bfloat16, with and without causality and packing.

  ratio     milliseconds by those of torch, or of jax.nn where there is no torch
  of rate   share of the machine's rate in matrix products, counting the products that the contestant makes
  temp MiB  what XLA plans for the gradients, beside inputs and results
  peak MiB  by how much they raise the memory of a fresh process, results included; at the largest size
"""
EXAMPLES = """examples:
  python scripts/benchmark.py attention --machine-rate --json attention.json
  python scripts/benchmark.py attention --kernels definition,chunked --sizes "16,8,128,64;2,8,1024,64" --causal
  python scripts/benchmark.py attention --gpu --markdown
"""
SIZES = "64,4,16,64;16,8,128,64;2,8,1024,64;1,8,4096,64"
GPU_TOKENS, GPU_LENGTHS = 16384, (64, 128, 256, 512, 1024, 2048, 4096, 8192)


def main() -> None:
    """Entry point."""
    arguments = command_line()
    with exit_on_user_error():
        match arguments.command:
            case "attention":
                benchmark_attention(arguments)


def command_line() -> argparse.Namespace:
    style: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = argparse.ArgumentParser(description=__doc__, **style)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    summary = "attention alone, beside jax.nn and PyTorch"
    attention = commands.add_parser("attention", help=summary, description=ATTENTION, epilog=EXAMPLES, **style)
    attention.add_argument("--rounds", type=int, default=5, help="turns of everyone, of which the best counts (5)")
    attention.add_argument("--sizes", metavar="B,N,T,H;…", help=f"batch rows, heads, positions, width ({SIZES})")
    attention.add_argument("--kernels", metavar="A,B,…", help=f"only these of {','.join(KERNELS)}")
    attention.add_argument("--causal", action="store_true", help="each size also with causality")
    attention.add_argument("--machine-rate", action="store_true", help="time plain matrix products too")
    attention.add_argument("--gpu", action="store_true", help="on a GPU: causality, packing and machine rate included")
    attention.add_argument("--markdown", action="store_true", help="print the table as docs/benchmarks.md has it")
    attention.add_argument("--json", metavar="FILE", type=Path, help="write every figure, and what it was made with")
    return parser.parse_args()


def benchmark_attention(arguments: argparse.Namespace) -> None:
    """Measure, print, write."""
    cases = cases_of(arguments.sizes, arguments.gpu, arguments.causal)
    kernels = kernels_of(arguments.kernels)
    if arguments.rounds < 1:
        raise UserError(f"--rounds={arguments.rounds} must be 1 or more")
    if arguments.json and arguments.json.is_dir():
        raise UserError(f"--json={arguments.json} is a folder; name a file")
    use_gpu() if arguments.gpu else use_one_thread()
    report = measure_all(cases, kernels, arguments.rounds, arguments.gpu or arguments.machine_rate)
    table = table_of(report)
    print("\n".join([as_markdown(table) if arguments.markdown else as_text(table), "", *report["notes"]]).strip())
    if arguments.json:
        write_atomically(arguments.json, json.dumps(report, indent=1) + "\n")


def cases_of(sizes: str | None, gpu: bool, causal: bool) -> list[Case]:
    """What is measured: on a GPU each size with and without causality, with and without eight sentences a row."""
    by_length = ";".join(f"{GPU_TOKENS // length},8,{length},128" for length in GPU_LENGTHS)
    text = sizes or (by_length if gpu else SIZES)
    try:
        shapes = [(int(B), int(N), int(T), int(H)) for B, N, T, H in (size.split(",") for size in text.split(";"))]
    except ValueError:
        raise UserError(f"--sizes={text} is not of the form B,N,T,H;B,N,T,H;…, such as {SIZES}") from None
    if min(map(min, shapes)) < 1:
        raise UserError(f"--sizes={text}: every number must be 1 or more")
    variants = list(itertools.product((False, True) if gpu or causal else (False,), (1, 8) if gpu else (1,)))
    plain = [Case(*shape, dtype="bfloat16" if gpu else "float32") for shape in shapes]
    return [replace(case, causal=hides, sentences=count) for case in plain for hides, count in variants]


def kernels_of(names: str | None) -> list[str]:
    chosen = names.split(",") if names else list(KERNELS)
    for name in chosen:
        if name not in KERNELS:
            raise UserError(f"--kernels: there is no kernel {name}; choose from {','.join(KERNELS)}")
    return chosen


def use_gpu() -> None:
    if jax.default_backend() != "gpu":
        raise UserError(f"--gpu: JAX sees no GPU here but a {jax.default_backend()}; pip install -e '.[cuda]' on one")


def measure_all(cases: list[Case], kernels: list[str], rounds: int, with_rate: bool) -> dict[str, Any]:
    """The report: what ``--json`` writes and ``table_of`` shows."""
    products = matrix_products() if with_rate else {}
    rows: list[Row] = []
    notes: dict[str, None] = {}  # each once, in order
    rates = dict.fromkeys(products, 0.0)
    for case in cases:
        print(f"measuring {case}", file=sys.stderr)
        of_case, milliseconds, missing = measure(case, kernels, rounds, products)
        rows, notes = rows + of_case, notes | dict.fromkeys(missing)
        rates = {name: max(rate, 2e3 * matrix_size()[0] ** 3 / milliseconds[name]) for name, rate in rates.items()}
    if jax.default_backend() == "cpu":
        add_peaks(rows, max(cases, key=Case.scores))
    return facts() | {"rounds": rounds, "matrix_flops_per_second": rates, "rows": rows, "notes": list(notes)}


def facts() -> dict[str, Any]:
    """What the figures were made with."""
    torch = torch_if_installed()
    return {
        "command": shlex.join(["python", "scripts/benchmark.py", *sys.argv[1:]]),
        "processor": processor(),
        "torch": str(torch.__version__) if torch else None,
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", ""),
        "environment": environment(),
    }


def table_of(report: dict[str, Any]) -> Table:
    """The report's rows, and for each case what ``auto`` chooses; a column without any figure is left out."""
    rate, (prefix, unit) = max(report["matrix_flops_per_second"].values(), default=None), unit_of(report)
    rows = []
    for case, group in itertools.groupby(report["rows"], key=lambda row: row["case"]):
        of_case = list(group)
        rows += [[case, row["contestant"], *cells_of(row, rate, unit)] for row in of_case]
        rows.append([case, f"auto: {of_case[0]['auto']}", *[""] * 10])
    more = ["ratio", f"{prefix}FLOP/s", "of rate"]
    header = ["B,N,T,H", "contestant", "forward ms", *more, "with gradients ms", *more, "temp MiB", "peak MiB"]
    used = [any(column) for column in zip(*rows, strict=True)]
    header, *rows = (list(itertools.compress(row, used)) for row in [header, *rows])
    return Table("Attention", note_of(report), header, rows)


def unit_of(report: dict[str, Any]) -> tuple[str, float]:
    """Its prefix and size, fit for a CPU or for a GPU."""
    return ("G", 1e9) if max(report["matrix_flops_per_second"].values(), default=0) < 1e13 else ("T", 1e12)


def cells_of(row: Row, rate: float | None, unit: float) -> list[str]:
    """Ten figures; an empty cell is one that there is not."""
    cells = []
    for kind in ("forward", "gradients"):
        milliseconds, ratio, flops = (row[f"{kind}_{figure}"] for figure in ("ms", "ratio", "flops_per_second"))
        cells += [three_digits(milliseconds), "" if ratio is None else f"{ratio:.2f}"]
        cells += [three_digits(flops / unit), f"{flops / rate:.0%}"] if rate else ["", ""]
    sizes = row["temp_bytes"], row["peak_bytes"]
    return [*cells, *("" if size is None else f"{size / 2**20:,.1f}" for size in sizes)]


def three_digits(number: float) -> str:
    """As many decimals as make three digits that count."""
    return f"{number:,.{max(0, 2 - math.floor(math.log10(number)))}f}"


def note_of(report: dict[str, Any]) -> str:
    """One line on what was measured, and where."""
    first, on_cpu = report["rows"][0], jax.default_backend() == "cpu"
    where = f"one thread of {report['processor']}" if on_cpu else jax.devices()[0].device_kind
    rows, dtype = matrix_size()
    prefix, unit = unit_of(report)
    rates = [f"{name} {rate / unit:.0f} {prefix}FLOP/s" for name, rate in report["matrix_flops_per_second"].items()]
    machine = f" Products of {dtype} matrices of {rows} rows: {', '.join(rates)}." if rates else ""
    return f"{first['dtype']} on {where}; best of {report['rounds']}; ratio to {first['ratio_to']}.{machine}"


if __name__ == "__main__":
    main()
