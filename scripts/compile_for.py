"""Compile a config's programs for accelerators that are not there, and print what they would take.

The vendors' compilers run on any Linux machine: NVIDIA's after pip install -e '.[aot-cuda]', Google's after
pip install -e '.[aot-tpu]'. They compile the training step, the loss of validation, and the search of the longest
sentences, for the config's mesh over all devices of TARGET:

  t4:1, h100:8      GPUs of one node, or of nodes of 8
  v5e:4x4, v6e:2x2  a slice of a two-dimensional torus of TPUs
  v5p:2x2x4         a slice of a three-dimensional one

The bytes of the training step and of what devices send stand beside those by arithmetic (benchmarks/cost). All figures
are written as JSON. If a program does not fit into the devices' memory, the exit code is 2. Nothing is run: time is
unknown, and so is whether cuDNN accepts its calls. docs/scaling.md explains the figures.
"""

import argparse
import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.compiled.compile import Compiled, compile_program
from benchmarks.compiled.programs import Workload, list_programs
from benchmarks.compiled.tables import list_findings, tabulate
from benchmarks.compiled.targets import Target, open_target
from benchmarks.cost.operations import StepCost
from cli.command_line import Parser, output_file
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from common.text_table import as_markdown, as_text
from configs.load import load_config
from configs.schema import RunConfig
from training.devices.mesh import make_mesh
from training.devices.preflight import choose_kernels
from training.run.environment import describe_environment

EXAMPLES = """examples:
  python scripts/compile_for.py h200:1 configs/transformer-big.yaml data.batch_rows=128
  python scripts/compile_for.py h200:8 configs/transformer-big.yaml data.batch_rows=1024 mesh.fsdp=8 model.kernel=cudnn
  python scripts/compile_for.py v5e:4x4 configs/transformer-base.yaml data.batch_rows=512 --only "training step"
"""
PROGRAMS = ("training step", "validation loss", "search")


def main() -> None:
    with exit_on_user_error():
        arguments = command_line()
        target = open_target(arguments.TARGET)
        workload = plan(load_config(arguments.CONFIG, arguments.CHANGES), target)
        results = compile_all(workload, target, arguments)
        show(results, workload, target, arguments)
        if lacks := [lack for result in results if (lack := result.find_lack(target))]:
            raise UserError("; ".join(lacks))


def command_line() -> argparse.Namespace:
    parser = Parser(__doc__, EXAMPLES)
    add = parser.add_argument
    add("TARGET", help="such as h200:8 or v5e:4x4")
    add("CONFIG", type=Path, help="such as configs/transformer-big.yaml")
    add("CHANGES", nargs="*", metavar="key=value", help="changes to it, such as data.batch_rows=512")
    add("--only", choices=PROGRAMS, help="compile one program (default: all three)")
    add("--markdown", action="store_true", help="print Markdown")
    add("--json", type=output_file, metavar="FILE", help="for figures (default: runs/compiled/CONFIG-TARGET.json)")
    return parser.parse_intermixed_args()


def plan(config: RunConfig, target: Target) -> Workload:
    """Return what the config computes on the target's devices, with the kernel that attention chooses there.

    UserError if it chooses two: the figures by arithmetic are of one.
    """
    mesh, length = make_mesh(config.mesh, target.devices), config.data.row_length
    with target.tracing():
        kernels = sorted(set(choose_kernels(config.model, (length, length)).values()))
    if len(kernels) > 1:
        raise UserError(f"model.kernel={config.model.kernel} chooses {' and '.join(kernels)} there: name one of them")
    print(f"{target.name}, mesh {'·'.join(map(str, mesh.devices.shape))}, {kernels[0]}")
    model = replace(config.model, kernel=kernels[0])
    cost = StepCost(model, config.tokenizer.vocab_size, config.data.batch_rows, length, length)
    return Workload(cost, config.training, config.decoding, mesh)


def compile_all(workload: Workload, target: Target, arguments: argparse.Namespace) -> list[Compiled]:
    """Compile the programs, and print a line for each as it is done."""
    results = []
    for program in list_programs(workload):
        if arguments.only is None or program.name.startswith(arguments.only):
            results.append(compile_program(program, target))
            print(f"compiled the {program.name} in {results[-1].seconds:.0f} s", flush=True)
    return results


def show(results: list[Compiled], workload: Workload, target: Target, arguments: argparse.Namespace) -> None:
    """Print the tables and findings, and write them as JSON."""
    findings = list_findings(results, workload.cost.model)
    tables = map(as_markdown if arguments.markdown else as_text, tabulate(results, target))
    print("", "\n\n".join([*tables, "\n".join(f"found  {line}" for line in findings)]), sep="\n")
    path = arguments.json or Path("runs/compiled", f"{arguments.CONFIG.stem}-{arguments.TARGET.replace(':', '-')}.json")
    figures = {
        "command": shlex.join(["python", "scripts/compile_for.py", *sys.argv[1:]]),
        "compilers": target.compilers,
        "environment": describe_environment(),
        "memory": target.accelerator.memory,
        "programs": [asdict(result) for result in results],
        "findings": findings,
    }
    write_atomically(path, json.dumps(figures, indent=1) + "\n")
    print(f"\nwritten  {path}")


if __name__ == "__main__":
    main()
