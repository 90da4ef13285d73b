"""What was compiled, in tables and in words: findings that someone may want to mend."""

from benchmarks.compiled.compile import Compiled
from benchmarks.compiled.targets import Target
from common.text_table import Table
from model.config import ModelConfig

SMALL = 1e6  # bytes; collectives of less have no row of their own: norms, counts and masks


def tabulate(programs: list[Compiled], target: Target) -> list[Table]:
    """Return tables of memory, of collectives, if there are any, and of kernels."""
    memory = [
        [each.name, f"{each.seconds:.0f}"]
        + ["–" if size is None else f"{size / 1e9:,.3f}" for size in (each.held, each.expected["held"])]
        + [f"{size / 1e9:,.2f}" for size in (each.temporary, each.peak)]
        for each in programs
    ]
    room = f"Each device of {target.name} has {target.accelerator.memory / 1e9:.0f} GB. Expected: by arithmetic."
    sent = "MB that a device puts in, and sends around a ring. By arithmetic: of what is reduced or has been gathered."
    transfers = [row for each in programs for row in _transfer_rows(each)]
    kernels = [[each.name, ", ".join(f"{count:,} {name}" for name, count in each.kernels.items())] for each in programs]
    tables = [
        Table("compiled, on one device", room, ["", "s", "held GB", "expected", "temporary GB", "peak GB"], memory),
        Table("collectives", sent, ["", "", "devices", "times", "MB", "sent MB"], transfers),
        Table("products and kernels", "How often each stands in the program.", ["", ""], kernels),
    ]
    return [table for table in tables if table.rows]


def _transfer_rows(program: Compiled) -> list[list[str]]:
    """Collectives of over a megabyte, all together, and what arithmetic expects."""
    large = [each for each in program.collectives if each["sent"] >= SMALL]
    rows = [[f"{each['kind']} of {each['dtype']}", str(each["devices"]), f"{each['times']:,}"] for each in large]
    expected = program.expected["transfers"]
    if large or expected:
        rows.append(["all", "", ""])
        large.append({"bytes": None, "sent": sum(each["sent"] for each in program.collectives)})
    rows += [[f"by arithmetic: {each['kind']} of {each['content']}", str(each["devices"]), ""] for each in expected]
    sizes = [[each["bytes"], each["sent"]] for each in [*large, *expected]]
    return [
        [program.name, *row, *("" if size is None else f"{size / 1e6:,.1f}" for size in pair)]
        for row, pair in zip(rows, sizes, strict=True)
    ]


def list_findings(programs: list[Compiled], model: ModelConfig) -> list[str]:
    """Return what costs more than it need: products and sums in another dtype, and arguments."""
    is_narrow = model.dtype == model.matmul_dtype == "bfloat16"
    lines = []
    for each in programs:
        wide = sum(count for dtypes, count in each.products.items() if "f32" in dtypes)
        if is_narrow and wide:
            lines.append(f"{each.name}: {wide} products of float32 operands")
        if each.not_donated:
            lines.append(f"{each.name}: {each.not_donated / 1e6:.1f} MB of donated arguments are not written over")
        for one in each.collectives:
            if one["kind"] in ("all-reduce", "reduce-scatter") and one["dtype"] in ("bf16", "f16"):
                lines.append(f"{each.name}: {one['bytes'] / 1e6:.1f} MB of sums are rounded to {one['dtype']}")
    return lines
