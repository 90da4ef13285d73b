"""Train every cell of a sweep and compare them: python scripts/sweep.py configs/sweeps/NAME.yaml [--jobs N]

A sweep file names a base config, changes to it, and seeds:

  base: ../tatoeba-small.yaml
  overrides: {training.steps: 1000, training.eval_every: 1000}   # of every cell
  grid: {model.positions: [sinusoidal, rotary], model.dropout: [0.1, 0.2]}   # or cells: [{}, {model.norm: post}]
  seeds: [1, 2, 3]

Each combination is a cell: a run in runs/sweeps/NAME/CELL. Give the same command again to continue, however the last
one stopped: complete cells are skipped, interrupted ones continue, and failed ones are tried again. Ctrl-C saves all
cells in training. At the end, all cells are compared with the first, on the validation set at their last evaluation or,
with --set test, on the test set. Cells that differ only in their seed are one system.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from cli.command_line import Parser, positive_integer
from common.errors import UserError, exit_on_user_error, write_note
from common.files import explain_write_errors
from common.text_table import as_text
from evaluation.comparison.tables import differences, scores
from experiment.evaluated_runs import compare_reported, read_reported
from experiment.sweep.cells import Cell, Sweep, load_sweep
from experiment.sweep.jobs import Jobs, shares
from experiment.sweep.states import COMPLETE, FAILED, State, check_directories, read_state, table_of_states

EXAMPLES = """examples:
  python scripts/sweep.py configs/sweeps/small-data.yaml --jobs 2
  python scripts/sweep.py configs/sweeps/small-data.yaml --status
  sbatch --array=0-31 scripts/sweep.sbatch configs/sweeps/small-data.yaml
"""


@exit_on_user_error()
def main() -> None:
    arguments = make_parser().parse_args()
    sweep = load_sweep(arguments.SWEEP)
    cells, number = sweep.cells, arguments.cell
    if number is not None:
        if not 0 <= number < len(cells):
            raise UserError(f"--cell must be from 0 to {len(cells) - 1}, not {number}")
        cells = [cells[number]]
    check_directories(cells)
    if arguments.status:
        print(as_text(table_of_states(cells, {cell.name: read_state(cell, arguments.set) for cell in cells})))
    else:
        train_all(sweep, cells, arguments.jobs, arguments.set)


def make_parser() -> Parser:
    parser = Parser(__doc__, EXAMPLES)
    parser.add_argument("SWEEP", type=Path, help="a sweep file, such as configs/sweeps/small-data.yaml")
    help = "cells to train at a time (default: one per GPU, or one on a CPU; several share the CPU's cores)"
    parser.add_argument("--jobs", type=positive_integer, metavar="N", help=help)
    parser.add_argument("--set", choices=["valid", "test"], default="valid", help="set to compare on (default: valid)")
    parser.add_argument("--status", action="store_true", help="show how far each cell is, and start nothing")
    parser.add_argument("--cell", type=int, metavar="NUMBER", help="train only this cell, counted from 0")
    return parser


def train_all(sweep: Sweep, cells: list[Cell], jobs: int | None, set_name: str) -> None:
    """Train incomplete cells, then compare; exit with 128 plus a signal's number, or with 2 if any cell is left."""
    with explain_write_errors(sweep.folder):
        sweep.folder.mkdir(parents=True, exist_ok=True)
    states = {cell.name: read_state(cell, set_name) for cell in cells}
    to_do = [cell for cell in cells if states[cell.name].word != COMPLETE]
    print(f"{sweep.folder}: {len(cells)} cells, {len(cells) - len(to_do)} of them complete", flush=True)
    work = Jobs(sweep, set_name, shares(jobs), states, report=say)
    work.run(to_do)
    if work.signals:
        write_note(f"stopped; what was training is saved. The same command goes on with {sweep.folder}")
        sys.exit(128 + work.signals[0])
    complete = [cell for cell in cells if states[cell.name].word == COMPLETE]
    if len(complete) > 1 and complete[0] is cells[0]:
        comparison = compare_reported([read_reported(str(cell.run_dir), set_name, cell.name) for cell in complete])
        print(f"\n{as_text(scores(comparison))}\n\n{as_text(differences(comparison))}")
    if work.failures:
        reasons = "; ".join(f"{name} ({why})" for name, why in work.failures.items())
        raise UserError(f"{len(work.failures)} of {len(cells)} cells failed; the same command tries again: {reasons}")
    if left := len(cells) - len(complete):  # stopped, or paused after training.minutes
        raise UserError(f"{left} of {len(cells)} cells are not complete; the same command goes on")


def say(cell: Cell, state: State) -> None:
    """A line when the state of a cell changes."""
    bleu = f", BLEU {state.bleu:.2f}" if state.bleu is not None else ""
    output = f"; see {cell.output}" if state.word == FAILED else ""
    print(f"{cell.name}: {state.word} at step {state.step}{bleu}{output}", flush=True)


if __name__ == "__main__":
    main()
