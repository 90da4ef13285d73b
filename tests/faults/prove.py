"""Prove that faults change nothing: python -m tests.faults.prove [CONFIG] --seed S --faults N [key=value …].

Programs meet N faults, one at a time, at operations on files or between them, and go on by the same command. All that
they leave is compared, mostly as SHA-256, with what undisturbed ones left: parameters, optimizer state, averaged
parameters, the sequence of batches, every line of metrics except measured times, the best checkpoint, translations and
scores, averages and exports. Seed and number give the same fault again: --replay K commits that of number K alone.
Without CONFIG, the experiment is so small that a fault takes seconds. The exit code is 1 if anything differs; what does
stays in runs/faults-CONFIG (run_dir=FOLDER chooses another folder), beside the programs' output.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from cli.command_line import Parser, names_among, path, positive_integer
from common.errors import UserError, exit_on_user_error
from configs.load import load_config
from tests.faults.commit import KINDS, Proof, prove
from tests.faults.scenarios import SCENARIOS

SMALL = Path(__file__).parent / "small/small.yaml"  # its corpus lies beside it


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("experiment", metavar="[CONFIG] key=value", nargs="*", help="a config file, and values of it")
    parser.add_argument("--seed", type=int, required=True, help="seed of the faults")
    count = parser.add_mutually_exclusive_group(required=True)
    count.add_argument("--faults", type=positive_integer, metavar="N", help="how many faults")
    count.add_argument("--replay", type=positive_integer, metavar="K", help="commit the fault of this number alone")
    for option, known in (("--scenarios", tuple(SCENARIOS)), ("--kinds", KINDS)):
        names, default = partial(names_among, known), ",".join(known)
        parser.add_argument(option, type=names, metavar="A,B", default=default, help="default: %(default)s")
    help = "how many processes train each run, the one scenario if there are several (default: 1)"
    parser.add_argument("--processes", type=positive_integer, default=1, metavar="P", help=help)
    arguments = parser.parse_intermixed_args()
    numbers = range(1, arguments.faults + 1) if arguments.faults else [arguments.replay]
    sys.exit(int(prove(plan(arguments), numbers) > 0))


def plan(arguments: argparse.Namespace) -> Proof:
    """The proof that the command line describes, with its folder created; UserError if the folder exists."""
    words, scenarios = arguments.experiment, arguments.scenarios if arguments.processes == 1 else ["train"]
    file, small = next(((word, []) for word in words if "=" not in word), (SMALL, [f"data.root={SMALL.parent}"]))
    overrides = [word for word in words if word != file and not word.startswith("run_dir=")]
    config = load_config(file, small + overrides)
    folders = [word.removeprefix("run_dir=") for word in words if word.startswith("run_dir=")]
    folder = path([f"runs/faults-{Path(file).stem}", *folders][-1]).absolute()
    if folder.exists():
        raise UserError(f"{folder} is there already: remove it, or set run_dir=NEW_FOLDER")
    folder.mkdir(parents=True)
    root = f"data.root={Path(config.data.root).absolute()}"  # programs run in folders of their own
    experiment = [str(Path(file).absolute()), root, *(word for word in overrides if not word.startswith("data.root="))]
    return Proof(experiment, config, folder, arguments.seed, scenarios, arguments.kinds, arguments.processes)


if __name__ == "__main__":
    main()
