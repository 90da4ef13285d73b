"""What a config would cost on many accelerators, on paper: FLOPs, memory, bytes sent, expected efficiency.

Arithmetic alone (benchmarks/cost/scaling.py), at vendors' published peaks; nothing is run. docs/scaling.md explains it.

  fixed batch    data.batch_rows rows however many devices there are (strong scaling)
  fixed rows     --rows-per-device on each (weak scaling)
  layout         mesh.data · mesh.fsdp · mesh.tensor
  state          parameters, two moments and the average, on one device
  temporary      activations, gradients and logits while a step runs, with model.rematerialize=false / true; "no room"
                 where state and this exceed the device's memory
  sent           by one device in a step
  compute        of the matrix products at --utilisation of the peak, and what the optimizer reads and writes
  sending        of gradients and parameters + of activations, at the slowest link's bandwidth, without latency
  efficiency     tokens/s of all devices by as many times those of one alone, which has the whole batch, or its fixed
                 rows: if transfers hide behind products / if not. Above 100 % where devices share the optimizer's work
"""

import argparse
from dataclasses import replace
from pathlib import Path

from jax.sharding import AbstractMesh

from benchmarks.cost.scaling import Accelerator, Layout, Times, state_bytes, temporary_bytes, times, transfers
from benchmarks.cost.step import StepWork
from cli.command_line import Parser
from common.errors import UserError, exit_on_user_error
from common.text_table import Table, as_markdown, as_text, three_digits
from configs.load import load_config
from configs.schema import RunConfig
from model.sharding import MESH_AXES
from training.devices.mesh import check_divisible

EXAMPLES = """examples:
  python scripts/scaling.py configs/transformer-big.yaml data.batch_rows=256 --markdown
  python scripts/scaling.py configs/transformer-base.yaml data.batch_rows=256 --accelerator v5p --utilisation 0.3
  python scripts/scaling.py configs/transformer-big.yaml --rows-per-device 128 --between 25
"""
# Published peaks, one direction. H200: 900 GB/s of NVLink both ways, and 400 Gbit/s of network a GPU. TPU v5p: 1,200
# GB/s both ways over the six links of a torus, of which rings along one axis use two; a pod has no nodes.
ACCELERATORS = {
    "h200": Accelerator("NVIDIA H200", 989e12, 141e9, 4.8e12, 450e9, 50e9, 8),
    "h100": Accelerator("NVIDIA H100", 989e12, 80e9, 3.35e12, 450e9, 50e9, 8),
    "v5p": Accelerator("TPU v5p", 459e12, 95e9, 2.765e12, 200e9, 200e9, 8960),
}
UNITS = {"flops": 1e12, "memory": 1e9, "memory_bandwidth": 1e9, "inside": 1e9, "between": 1e9, "node": 1}
INSIDE = 8  # devices over which mixed layouts have fsdp or tensor


def main() -> None:
    """Entry point."""
    with exit_on_user_error():
        arguments = command_line()
        config = load_config(arguments.CONFIG, arguments.CHANGES)
        accelerator = accelerator_of(arguments)
        tables = [step_table(config, accelerator, arguments.utilisation)]
        for fixed in (None, arguments.rows_per_device):
            tables.append(scaling_table(config, accelerator, arguments.utilisation, arguments.devices, fixed))
        tables = [replace(table, title=f"{arguments.CONFIG.stem}: {table.title}") for table in tables]
    print("\n\n".join(map(as_markdown if arguments.markdown else as_text, tables)))


def command_line() -> argparse.Namespace:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("CONFIG", type=Path, help="such as configs/transformer-big.yaml")
    parser.add_argument("CHANGES", nargs="*", metavar="key=value", help="changes to it, such as data.batch_rows=256")
    parser.add_argument("--devices", type=counts, default="1,8,64,256", help="how many (default: %(default)s)")
    parser.add_argument("--rows-per-device", type=positive, default=64, help="of weak scaling (default: %(default)s)")
    assumed = "of the peak, by the matrix products on one device; benchmark.py train measures it (default: %(default)s)"
    parser.add_argument("--utilisation", type=share, default=0.4, help=assumed)
    parser.add_argument("--accelerator", choices=ACCELERATORS, default="h200", help="published peaks (%(default)s)")
    parser.add_argument("--flops", type=above_zero, metavar="T", help="instead: 10^12 bfloat16 operations a second")
    parser.add_argument("--memory", type=above_zero, metavar="GB", help="instead: memory of a device")
    parser.add_argument("--memory-bandwidth", type=above_zero, metavar="GB", help="instead: GB/s of that memory")
    parser.add_argument("--inside", type=above_zero, metavar="GB", help="instead: GB/s a device sends in its node")
    parser.add_argument("--between", type=above_zero, metavar="GB", help="instead: GB/s a device sends to other nodes")
    parser.add_argument("--node", type=positive, metavar="N", help="instead: devices in a node")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    return parser.parse_intermixed_args()


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1")
    return int(text)


def counts(text: str) -> list[int]:
    return [positive(part) for part in text.split(",")]


def above_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def share(text: str) -> float:
    if above_zero(text) > 1:
        raise argparse.ArgumentTypeError(f"{text} is above 1")
    return float(text)


def accelerator_of(arguments: argparse.Namespace) -> Accelerator:
    """The named one, with what else is said of it."""
    said = {key: vars(arguments)[key] for key in UNITS}
    changes = {key: number * UNITS[key] for key, number in said.items() if number is not None}
    named = ACCELERATORS[arguments.accelerator]
    return replace(named, **changes, name=f"{named.name}, changed") if changes else named


def work_of(config: RunConfig, rows: int) -> StepWork:
    """A step on full rows."""
    length = config.data.row_length
    return StepWork(config.model, config.tokenizer.vocab_size, rows, length, length)


def step_table(config: RunConfig, accelerator: Accelerator, utilisation: float) -> Table:
    """What a step is, on whatever it runs."""
    work = work_of(config, config.data.batch_rows)
    flops = f"{work.flops() / 1e12:.2f} TFLOP, {work.flops() / work.places() / 1e6:.0f} MFLOP a token"
    rows = [
        ["batch", f"{work} tokens, if none is padding: {work.places():,}"],
        ["parameters", f"{work.parameters():,}"],
        ["operations of matrix products", flops],
        *([name, megabytes(size)] for name, size in work.bytes(config.training).items() if size),
        ["the optimizer reads and writes", megabytes(work.update_bytes(config.training))],
        ["accelerator", in_words(accelerator)],
        ["utilisation of its peak, assumed", f"{utilisation:.0%}"],
    ]
    return Table("a step", "Bytes of all devices together.", ["", ""], rows)


def in_words(accelerator: Accelerator) -> str:
    gigabytes = [f"{size / 1e9:,.0f}" for size in (accelerator.memory, accelerator.memory_bandwidth)]
    links = [f"{size / 1e9:,.0f}" for size in (accelerator.inside, accelerator.between)]
    return (
        f"{accelerator.name}: {accelerator.flops / 1e12:,.0f} TFLOP/s, {gigabytes[0]} GB at {gigabytes[1]} GB/s, "
        f"links {links[0]} GB/s in a node of {accelerator.node:,}, {links[1]} GB/s between nodes"
    )


def scaling_table(
    config: RunConfig, accelerator: Accelerator, utilisation: float, devices: list[int], fixed: int | None
) -> Table:
    """Every layout of so many devices: on the config's batch, or with ``fixed`` rows on each device."""
    header = ["devices", "layout", "rows a device", "state GB", "temporary GB", "sent MB", "compute ms", "sending ms"]
    rows = []
    for count in devices:
        batch = fixed * count if fixed else config.data.batch_rows
        for layout in layouts(count):
            rows.append(scaling_row(config, layout, batch, accelerator, utilisation, fixed or batch))
    title = f"{fixed} rows on each device" if fixed else f"a batch of {config.data.batch_rows} rows"
    note = "Efficiency: transfers hidden behind products / not hidden. A dash: the rows do not divide so."
    return Table(title, note, [*header, "efficiency"], rows)


def layouts(devices: int) -> list[Layout]:
    """All by data, all by fsdp, and of several nodes: either of fsdp or tensor in the node, data between them."""
    inside = min(devices, INSIDE)
    mixed = [(devices // inside, inside, 1)] if devices > inside else []
    shapes = [(devices, 1, 1), (1, devices, 1), *mixed, (devices // inside, 1, inside)]
    return [Layout(*shape) for shape in dict.fromkeys(shapes)]


def scaling_row(
    config: RunConfig, layout: Layout, rows: int, accelerator: Accelerator, utilisation: float, alone: int
) -> list[str]:
    """``alone``: the rows of the one device that efficiency compares with."""
    work, training = work_of(config, rows), config.training
    first = [f"{layout.devices}", str(layout)]
    try:
        check_divisible(AbstractMesh(layout, MESH_AXES), config.model, rows, training.accumulation)
    except UserError:
        return [*first, *["–"] * 7]
    taken = times(work, training, layout, accelerator, utilisation)
    one = sum(times(work_of(config, alone), training, Layout(1, 1, 1), accelerator, utilisation)) / alone
    gained = [rows * one / layout.devices / seconds for seconds in (taken.overlapped(), taken.in_turn())]
    state = state_bytes(work, training, layout)
    sent = sum(each.sent() for each in transfers(work, training, layout))
    return [
        *(*first, f"{rows / layout.by_rows:,.0f}", f"{state / 1e9:.2f}"),
        *(temporaries(config, layout, rows, accelerator.memory - state), f"{sent / 1e6:,.0f}", *milliseconds(taken)),
        " / ".join(f"{share:.0%}" for share in gained),
    ]


def temporaries(config: RunConfig, layout: Layout, rows: int, room: float) -> str:
    """Beside the state, without and with rematerialization."""
    told = []
    for rematerialize in (False, True):
        work = work_of(replace(config, model=replace(config.model, rematerialize=rematerialize)), rows)
        size = temporary_bytes(work, config.training, layout)
        told.append(f"{size / 1e9:.1f}" + (" (no room)" if size > room else ""))
    return " / ".join(told)


def milliseconds(taken: Times) -> tuple[str, str]:
    """Of computing, and of sending."""
    computing = three_digits(1e3 * (taken.compute + taken.update))
    return computing, f"{1e3 * taken.behind:.2f} + {1e3 * taken.between:.2f}"


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    main()
