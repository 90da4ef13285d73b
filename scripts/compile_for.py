"""Compile a config's training step for accelerators that this machine lacks, and print the memory it would need.

The vendors' compilers run on any Linux machine: NVIDIA's after pip install -e '.[aot-cuda]', Google's after
pip install -e '.[aot-tpu]'. They compile for the config's mesh over all devices of TARGET:

  t4:1, h100:8      GPUs of one node, or of nodes of 8
  v5e:4x4, v6e:2x2  a slice of a two-dimensional torus of TPUs
  v5p:2x2x4         a slice of a three-dimensional one

The table shows the memory of each device: what parameters, state and batch occupy, what is temporary, and the peak. It
is also written as JSON. If the step does not fit into the devices' memory, the exit code is 2. Nothing is run, so the
time is unknown, and so is whether cuDNN accepts its calls. docs/scaling.md explains the figures.
"""

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH

from benchmarks.compiled.compile import Compiled, check_fits, compile_step
from benchmarks.compiled.targets import Target, open_target
from cli.command_line import Parser, output_file, write_and_print
from common.errors import exit_on_user_error
from common.text_table import Table, as_text
from configs.load import load_config
from training.devices.mesh import make_mesh
from training.run.environment import describe_environment

EXAMPLES = """examples:
  python scripts/compile_for.py h200:1 configs/transformer-big.yaml data.batch_rows=128
  python scripts/compile_for.py h200:8 configs/transformer-big.yaml data.batch_rows=1024 mesh.fsdp=8 model.kernel=cudnn
  python scripts/compile_for.py v5e:4x4 configs/transformer-base.yaml data.batch_rows=512
"""


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__, EXAMPLES)
    add = parser.add_argument
    add("TARGET", help="such as h200:8 or v5e:4x4")
    add("CONFIG", type=Path, help="such as configs/transformer-big.yaml")
    add("CHANGES", nargs="*", metavar="key=value", help="changes to it, such as data.batch_rows=512")
    add("--json", type=output_file, metavar="FILE", help="the figures (default: runs/compiled/CONFIG-TARGET.json)")
    arguments = parser.parse_intermixed_args()
    target = open_target(arguments.TARGET)
    config = load_config(arguments.CONFIG, arguments.CHANGES)
    mesh = make_mesh(config.mesh, target.devices)
    print(f"{target.name}, mesh {'·'.join(map(str, mesh.devices.shape))}", flush=True)
    step = compile_step(config, mesh, target)
    show(step, target, arguments)
    check_fits(step, target)


def show(step: Compiled, target: Target, arguments: argparse.Namespace) -> None:
    """Write the figures as JSON, and print the table even if that fails."""
    memory = target.accelerator.memory
    row = [f"{step.seconds:.0f}", *(f"{size / 1e9:,.3f}" for size in (step.held, step.temporary, step.peak))]
    room = f"Each device of {target.name} has {memory / 1e9:.0f} GB."
    table = Table("training step, on one device", room, ["s", "held GB", "temporary GB", "peak GB"], [row])
    path = arguments.json or Path("runs/compiled", f"{arguments.CONFIG.stem}-{arguments.TARGET.replace(':', '-')}.json")
    figures = {
        "command": shlex.join(["python", "scripts/compile_for.py", *sys.argv[1:]]),
        "compilers": target.compilers,
        "environment": describe_environment(),
        "memory": memory,
        "step": asdict(step),
    }
    write_and_print(path, json.dumps(figures, indent=1) + "\n", f"\n{as_text(table)}")


if __name__ == "__main__":
    main()
