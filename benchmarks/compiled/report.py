"""What was compiled, in tables, as JSON, and in words: findings that someone may want to mend."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.compiled.compile import Compiled, describe_lack
from benchmarks.compiled.programs import Expected
from benchmarks.compiled.targets import Target
from benchmarks.cost.operations import StepCost
from benchmarks.cost.scaling import Transfer
from common.text_table import Table

TILES = {"gpu": 8, "tpu": 128}  # what products' dimensions are padded to: 16 bytes of bfloat16, a unit's 128 columns
SMALL = 1e6  # bytes; collectives of less have no row of their own: norms, counts and masks


@dataclass(frozen=True)
class Result:
    """A compiled program beside what was expected of it."""

    compiled: Compiled
    expected: Expected

    def lack(self, target: Target) -> str | None:
        """Why it does not fit on a device of the target, which its compiler may not say; None if it does."""
        needed, has = self.compiled.peak, target.accelerator.memory
        return describe_lack(self.compiled.name, target, needed, has) if needed > has else None

    def as_json(self) -> dict[str, Any]:
        transfers = [transfer._asdict() | {"sent": transfer.sent()} for transfer in self.expected.transfers]
        return asdict(self.compiled) | {
            "expected": asdict(replace(self.expected, transfers=[])) | {"transfers": transfers}
        }


def compare_costs(results: list[Result], target: Target) -> Table:
    """Seconds, bytes and operations of the programs, on one device."""
    rows = [
        [
            result.compiled.name,
            f"{result.compiled.seconds:.0f}",
            *_pair(result.compiled.held, result.expected.held, 1e9, 3),
            *_pair(result.compiled.temporary, result.expected.temporary, 1e9, 2),
            f"{result.compiled.peak / 1e9:.2f}",
            *_pair(result.compiled.operations, result.expected.operations, 1e12, 3),
        ]
        for result in results
    ]
    note = (
        f"Each device of {target.name} has {target.accelerator.memory / 1e9:.0f} GB. Expected: by arithmetic. A "
        "search's operations are those of its encoder and first step."
    )
    pairs = ([name, "expected"] for name in ("held GB", "temporary GB", "TFLOP"))
    header = ["", "s", *next(pairs), *next(pairs), "peak GB", *next(pairs)]
    return Table("compiled, on one device", note, header, rows)


def _pair(found: float, expected: float | None, unit: float, digits: int) -> list[str]:
    return [f"{found / unit:,.{digits}f}", "–" if expected is None else f"{expected / unit:,.{digits}f}"]


def compare_collectives(results: list[Result]) -> Table:
    """What devices send in a run of each program, in collectives of over a megabyte."""
    rows = []
    for result in results:
        for one in result.compiled.collectives:
            if one.sent >= SMALL:
                cells = [f"{one.times:,}", f"{one.bytes / 1e6:,.1f}", f"{one.sent / 1e6:,.1f}"]
                devices = "" if one.kind == "collective-permute" else str(one.devices)
                rows.append([result.compiled.name, f"{one.kind} of {one.dtype}", devices, *cells])
        if any(row[0] == result.compiled.name for row in rows) or result.expected.transfers:
            sent = sum(one.sent for one in result.compiled.collectives)
            rows.append([result.compiled.name, "all", "", "", "", f"{sent / 1e6:,.1f}"])
            rows += [_expected_row(result.compiled.name, transfer) for transfer in result.expected.transfers]
    note = (
        "MB that one device puts in, and sends around a ring. By arithmetic: of what is reduced or has been gathered."
    )
    return Table("collectives", note, ["", "", "devices", "times", "MB", "sent MB"], rows)


def _expected_row(name: str, transfer: Transfer) -> list[str]:
    cells = [f"{transfer.bytes / 1e6:,.1f}", f"{transfer.sent() / 1e6:,.1f}"]
    return [name, f"by arithmetic: {transfer.kind} of {transfer.content}", str(transfer.devices), "", *cells]


def list_kernels(results: list[Result]) -> Table:
    """Kernels and products in the programs."""
    rows = [
        [result.compiled.name, ", ".join(f"{count:,} {name}" for name, count in result.compiled.kernels.items())]
        for result in results
    ]
    return Table("products and kernels", "How often each stands in the program.", ["", ""], rows)


def list_findings(results: list[Result], cost: StepCost, target: Target) -> list[str]:
    """What costs more than it need: products in a wide dtype, padding, copies, messages."""
    narrow = cost.model.dtype == cost.model.matmul_dtype == "bfloat16"
    lines = list(_describe_padding(cost, target))
    for compiled in (result.compiled for result in results):
        found = []
        if narrow and compiled.wide_products:
            found.append(f"{len(compiled.wide_products)} products of float32 operands, as {compiled.wide_products[0]}")
        if compiled.not_donated:
            found.append(f"{compiled.not_donated / 1e6:.1f} MB of donated arguments are not written over")
        if compiled.rematerialized:
            found.append(f"{compiled.rematerialized} instructions are computed again to save memory")
        found += [
            f"{opcode} instructions move {size / 1e9:.2f} GB"
            for opcode, size in compiled.moved.items()
            if size > 0.1 * compiled.temporary
        ]
        found += [
            f"{one.bytes / 1e6:.1f} MB of sums over devices are rounded to {one.dtype}"
            for one in compiled.collectives
            if one.kind in ("all-reduce", "reduce-scatter") and one.dtype in ("bf16", "f16")
        ]
        found += [f"the compiler says {count} times: {text}" for text, count in compiled.messages.items()]
        lines += [f"{compiled.name}: {line}" for line in found]
    return lines


def _describe_padding(cost: StepCost, target: Target) -> list[str]:
    """Sizes that are no multiple of what the units for products take at once."""
    tile, model = TILES[target.device.platform], cost.model
    sizes = {
        "tokenizer.vocab_size": cost.vocab_size,
        "model.d_model": model.d_model,
        "model.d_ff": model.d_ff,
        "model.head_dim": model.head_dim,
        "data.row_length": cost.sources,
    }
    return [
        f"{key}={size} is padded to {(padded := size + -size % tile)}, {size / padded:.1%} of which is used"
        for key, size in sizes.items()
        if size % tile
    ]
