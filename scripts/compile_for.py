"""Compile a config's programs for accelerators that are not there, and print what they would take.

The vendors' compilers run on any Linux machine: NVIDIA's after pip install -e '.[aot-cuda]', Google's after
pip install -e '.[aot-tpu]'. They compile the training step, the loss of validation, and the search of the longest
sentences, for the config's mesh over all devices of TARGET:

  t4:1, h100:8      GPUs of one node, or of nodes of 8
  v5e:4x4, v6e:2x2  a slice of a two-dimensional torus of TPUs
  v5p:2x2x4         a slice of a three-dimensional one

The table shows the memory of each device: what parameters, state and batch hold, what is temporary, and the peak. It is
also written as JSON. If a program does not fit into the devices' memory, the exit code is 2. Nothing is run:
time is unknown, and so is whether cuDNN accepts its calls. docs/scaling.md explains the figures.
"""

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from benchmarks.compiled.compile import Compiled, compile_program
from benchmarks.compiled.programs import list_programs
from benchmarks.compiled.targets import Target, open_target
from cli.command_line import Parser, output_file, write_and_print
from common.errors import UserError, exit_on_user_error
from common.text_table import Table, as_text
from configs.load import load_config
from configs.schema import RunConfig
from training.devices.mesh import make_mesh
from training.run.environment import describe_environment

EXAMPLES = """examples:
  python scripts/compile_for.py h200:1 configs/transformer-big.yaml data.batch_rows=128
  python scripts/compile_for.py h200:8 configs/transformer-big.yaml data.batch_rows=1024 mesh.fsdp=8 model.kernel=cudnn
  python scripts/compile_for.py v5e:4x4 configs/transformer-base.yaml data.batch_rows=512 --only "training step"
"""
PROGRAMS = ("training step", "validation loss", "search")


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    add = parser.add_argument
    add("TARGET", help="such as h200:8 or v5e:4x4")
    add("CONFIG", type=Path, help="such as configs/transformer-big.yaml")
    add("CHANGES", nargs="*", metavar="key=value", help="changes to it, such as data.batch_rows=512")
    add("--only", choices=PROGRAMS, help="compile one program (default: all three)")
    add("--json", type=output_file, metavar="FILE", help="for figures (default: runs/compiled/CONFIG-TARGET.json)")
    arguments = parser.parse_intermixed_args()
    target = open_target(arguments.TARGET)
    results = compile_all(load_config(arguments.CONFIG, arguments.CHANGES), target, arguments.only)
    show(results, target, arguments)
    if lacks := [lack for result in results if (lack := result.find_lack(target))]:
        raise UserError("; ".join(lacks))


def compile_all(config: RunConfig, target: Target, only: str | None) -> list[Compiled]:
    """Compile the programs, and print a line for each as it is done."""
    mesh, results = make_mesh(config.mesh, target.devices), []
    print(f"{target.name}, mesh {'·'.join(map(str, mesh.devices.shape))}")
    for program in list_programs(config, mesh):
        if only is None or program.name.startswith(only):
            results.append(compile_program(program, target))
            print(f"compiled the {program.name} in {results[-1].seconds:.0f} s", flush=True)
    return results


def show(results: list[Compiled], target: Target, arguments: argparse.Namespace) -> None:
    """Write the figures as JSON, and print the table even if that fails."""
    memory = target.accelerator.memory
    rows = [
        [each.name, f"{each.seconds:.0f}", *(f"{size / 1e9:,.3f}" for size in (each.held, each.temporary, each.peak))]
        for each in results
    ]
    room = f"Each device of {target.name} has {memory / 1e9:.0f} GB."
    table = Table("compiled, on one device", room, ["", "s", "held GB", "temporary GB", "peak GB"], rows)
    path = arguments.json or Path("runs/compiled", f"{arguments.CONFIG.stem}-{arguments.TARGET.replace(':', '-')}.json")
    figures = {
        "command": shlex.join(["python", "scripts/compile_for.py", *sys.argv[1:]]),
        "compilers": target.compilers,
        "environment": describe_environment(),
        "memory": memory,
        "programs": [asdict(result) for result in results],
    }
    write_and_print(path, json.dumps(figures, indent=1) + "\n", f"\n{as_text(table)}")


if __name__ == "__main__":
    main()
