"""Estimate what a config would cost on many accelerators: FLOPs, state, bytes sent, expected efficiency.

Arithmetic only (benchmarks/cost), from vendors' published peaks; nothing is run. docs/scaling.md explains it. For the
memory of activations see compile_for.py, or dry_run=true of train.py.

  fixed batch    data.batch_rows rows on any number of devices (strong scaling)
  fixed rows     --rows-per-device on each (weak scaling)
  layout         mesh.data · mesh.fsdp · mesh.tensor
  state          parameters, two moments and the average, on one device
  sent           by one device in a step
  compute        matrix products at --utilisation of the peak, and the optimizer's reads and writes
  sending        gradients and parameters + activations, at the slowest link's bandwidth, without latency
  efficiency     tokens/s by n times those of one device, which computes the whole batch or its fixed rows: if transfers
                 hide behind products / if not. Above 100 % where devices share the optimizer's work
"""

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.cost.accelerators import ACCELERATORS, Accelerator
from benchmarks.cost.operations import StepCost
from benchmarks.cost.scaling import Scenario, scaling_table, step_table
from cli.command_line import Parser, positive, positive_integer, positive_integers, share
from common.errors import exit_on_user_error
from common.text_table import as_markdown, as_text
from configs.load import load_config

EXAMPLES = """examples:
  python scripts/scaling.py configs/transformer-big.yaml data.batch_rows=256 --markdown
  python scripts/scaling.py configs/transformer-base.yaml data.batch_rows=256 --accelerator v5p --utilisation 0.3
  python scripts/scaling.py configs/transformer-big.yaml --rows-per-device 128 --between 25
"""
CHANGES = {  # of the named accelerator: the unit of a number, its metavar and its help
    "flops": (1e12, "TERA", "instead of its peak: 10^12 bfloat16 operations a second"),
    "memory": (1e9, "GB", "instead of its memory"),
    "memory_bandwidth": (1e9, "GB", "instead of its memory's GB/s"),
    "inside": (1e9, "GB", "instead: GB/s that a device sends to others of its node"),
    "between": (1e9, "GB", "instead: GB/s that a device sends to other nodes"),
}


def main() -> None:
    with exit_on_user_error():
        arguments = command_line()
        config = load_config(arguments.CONFIG, arguments.CHANGES)
        length = config.data.row_length
        cost = StepCost(config.model, config.tokenizer.vocab_size, config.data.batch_rows, length, length)
        scenario = Scenario(config.training, choose_accelerator(arguments), arguments.utilisation)
        tables = [
            step_table(cost, scenario),
            scaling_table(cost, scenario, arguments.devices),
            scaling_table(cost, scenario, arguments.devices, arguments.rows_per_device),
        ]
    tables = [replace(table, title=f"{arguments.CONFIG.stem}: {table.title}") for table in tables]
    print("\n\n".join(map(as_markdown if arguments.markdown else as_text, tables)))


def command_line() -> argparse.Namespace:
    parser = Parser(__doc__, EXAMPLES)
    add = parser.add_argument
    add("CONFIG", type=Path, help="such as configs/transformer-big.yaml")
    add("CHANGES", nargs="*", metavar="key=value", help="changes to it, such as data.batch_rows=256")
    add("--devices", type=positive_integers, default="1,8,64,256", help="numbers of devices (default: %(default)s)")
    add("--rows-per-device", type=positive_integer, default=64, help="for weak scaling (default: %(default)s)")
    assumed = "share of the peak that products reach on one device, as benchmark.py train measures (%(default)s)"
    add("--utilisation", type=share, default=0.4, help=assumed)
    add("--accelerator", choices=ACCELERATORS, default="h200", help="whose published peaks (default: %(default)s)")
    for name, (_, metavar, help) in CHANGES.items():
        add(f"--{name.replace('_', '-')}", type=positive, metavar=metavar, help=help)
    add("--node", type=positive_integer, metavar="DEVICES", help="instead: devices in a node")
    add("--markdown", action="store_true", help="print Markdown")
    return parser.parse_intermixed_args()


def choose_accelerator(arguments: argparse.Namespace) -> Accelerator:
    """Return the named accelerator with the changes of the command line."""
    changes = {key: vars(arguments)[key] * unit for key, (unit, *_) in CHANGES.items() if vars(arguments)[key]}
    changes |= {"node": arguments.node} if arguments.node else {}
    named = ACCELERATORS[arguments.accelerator]
    return replace(named, **changes, name=f"{named.name}, changed") if changes else named


if __name__ == "__main__":
    main()
