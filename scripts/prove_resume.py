"""Prove that killing a training changes nothing: python scripts/prove_resume.py CONFIG --kills N [key=value …].

The experiment is trained once without interruption. Then it is trained again, but killed (SIGKILL) at random moments
(right after the start, in steps, while a checkpoint is written beside them, in an evaluation) and restarted with the
same command until it is done; if it is done before N kills, another run begins. With --processes, several processes
train each run, and are killed one after the other, in random order. All that a run leaves is compared, mostly as
SHA-256: parameters, optimizer state, averaged parameters, the sequence of batches, every line of metrics except
measured times, the best checkpoint, and the translations and scores of the test set. The exit code is 1 if anything
differs. The runs stay in runs/proof-CONFIG (run_dir=FOLDER chooses another folder).
"""

import argparse
import random
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import parse_command_line, positive_integer
from common.errors import UserError, exit_on_user_error
from configs.load import load_config
from experiment.resume_proof import Proof, prove


def main() -> None:
    positionals = {"CONFIG": "a config file, such as configs/quickstart.yaml"}
    arguments = parse_command_line(__doc__, positionals, add_options)
    with exit_on_user_error():
        differences = prove(plan_proof(arguments))
    sys.exit(int(differences > 0))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=positive_integer, required=True, help="how often to kill the training")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")
    processes = "how many processes train each run (default: 1)"
    parser.add_argument("--processes", type=positive_integer, default=1, help=processes)


def plan_proof(arguments: argparse.Namespace) -> Proof:
    """The proof that the command line describes, with its folder created; UserError if the folder exists."""
    path, overrides = arguments.CONFIG, arguments.overrides
    config = load_config(path, overrides)
    others = [override for override in overrides if not override.startswith("run_dir=")]
    folder = Path(config.run_dir) if others != overrides else Path("runs") / f"proof-{Path(path).stem}"
    if folder.exists():
        raise UserError(f"{folder} is there already: remove it, or set run_dir=NEW_FOLDER")
    folder.mkdir(parents=True)
    chance = random.Random(arguments.seed)
    return Proof([path, *others], config, folder, arguments.kills, arguments.processes, chance)


if __name__ == "__main__":
    main()
