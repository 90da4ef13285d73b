"""Repeat an update of a run and inspect it, or find the first update at which two runs differ.

  python scripts/replay.py RUN --step S       rebuilds the batch of update S, repeats that update, and shows its
                                              loss, its gradient by module, and every sentence pair in the batch
  python scripts/replay.py RUN OTHER_RUN      shows how config, versions, data and metrics of two runs differ, then
                                              repeats their updates side by side up to the first difference;
                                              --step S: no further than S

Nothing is written except the run's cache of row counts. The script repeats the updates from the newest checkpoint
before S up to S, so a run with more checkpoints (training.keep, training.save_every) is replayed faster. Exit code: 0,
or 1 if two runs differ, or 2 for a usage error.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import Parser
from common.errors import exit_on_user_error
from configs.load import find_differences
from experiment.load_run import load_run
from training.replay.comparison import compare_runs, format_comparison
from training.replay.inspect_step import format_inspection, inspect_update, sort_by_loss
from training.replay.replay import to_json

EXAMPLES = """examples:
  python scripts/replay.py runs/tatoeba-small --step 1200 --sort loss | head -40
  python scripts/replay.py runs/tatoeba-small runs/tatoeba-small-again
"""


def main() -> None:
    with exit_on_user_error():
        arguments = parse_arguments()
        if arguments.OTHER is None:
            inspection = inspect_update(load_run(Path(arguments.RUN)).recorded, arguments.step)
            if arguments.sort == "loss":
                inspection = replace(inspection, pairs=sort_by_loss(inspection.pairs))
            print(to_json(inspection) if arguments.json else format_inspection(inspection))
            return
        one, other = (load_run(Path(folder)) for folder in (arguments.RUN, arguments.OTHER))
        differences = list(find_differences(one.saved, other.saved).values())
        comparison = compare_runs(one.recorded, other.recorded, differences, arguments.step)
        print(to_json(comparison) if arguments.json else format_comparison(comparison))
    sys.exit(int(comparison.differ))


def parse_arguments() -> argparse.Namespace:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("RUN", help="a run directory, such as runs/tatoeba-small")
    parser.add_argument("OTHER", nargs="?", help="a run to compare it with")
    parser.add_argument("--step", type=int, metavar="S", help="the update to inspect; with two runs, the last one")
    parser.add_argument("--sort", choices=["row", "loss"], default="row", help="order of the pairs; loss: worst first")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    arguments = parser.parse_args()
    if arguments.OTHER is None and arguments.step is None:
        parser.error("name the update to inspect with --step S, or a second run")
    if arguments.step is not None and arguments.step < 1:
        parser.error(f"--step must be at least 1, not {arguments.step}: updates are counted from 1")
    return arguments


if __name__ == "__main__":
    main()
