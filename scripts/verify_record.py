"""Train the seeds of a record again and test its claim: python scripts/verify_record.py NAME

A record is a sweep file of one recipe and several seeds, configs/records/NAME.yaml. It holds if the mean BLEU of its
seeds on the validation set, at their last evaluation, is above 50.0 by a one-sided t test, p < 0.01
(docs/records.md). The seeds are trained one after the other on two fixed cores, in runs/sweeps/NAME/CELL. Give the same
command again to continue after an interruption: it skips complete seeds.

Minutes count training up to the last save, including the evaluations before it. Beside them is the speed of the
machine: the rate of plain matrix products, measured right after each training.

The exit code is 1 if the target is not reached.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # import from this clone despite PYTHONPATH
    from cli.process import prepare_process

    prepare_process()

from benchmarks.machine import processor, use_cores
from benchmarks.turns import product_rates
from cli.command_line import Parser
from common.errors import UserError, exit_on_user_error
from common.files import read_json_object, write_atomically
from common.text_table import Table, as_text
from configs.load import SHIPPED
from evaluation.comparison.significance import p_above
from experiment.sweep.cells import Cell, Sweep, load_sweep
from experiment.sweep.jobs import Jobs, shares
from experiment.sweep.states import COMPLETE, check_directories, read_state
from training.progress import Progress
from training.run.checkpoint import read_notes
from training.run.layout import MACHINE
from training.run.retention import good_steps

TARGET, LEVEL = 50.0, 0.01
CORES, ROUNDS = 2, 5


@exit_on_user_error()
def main() -> None:
    parser = Parser(__doc__)
    parser.add_argument("NAME", help="a record of configs/records, such as minutes-14, or a file FILE.yaml")
    name = parser.parse_args().NAME
    use_cores(CORES)
    record = load_record(Path(name) if name.endswith(".yaml") else SHIPPED / "records" / f"{name}.yaml")
    for cell in record.cells:
        train_seed(record, cell)
    scores = [read_state(cell, "valid").bleu or 0.0 for cell in record.cells]
    p, mean = p_above(scores, TARGET), sum(scores) / len(scores)
    verdict = "a record" if p < LEVEL else "the target is not reached"
    note = f"{verdict}: mean {mean:.2f} of {len(scores)} seeds, one-sided p = {p:.2g} (a record needs p < {LEVEL})"
    header = ["seed", "BLEU, valid", "minutes", "GFLOP/s of products", "processor"]
    print(as_text(Table("Record", note, header, list(map(row, record.cells)))))
    sys.exit(0 if p < LEVEL else 1)


def load_record(path: Path) -> Sweep:
    """UserError for several recipes, for one seed, which no test can judge, or for other runs in its place."""
    record = load_sweep(path)
    if len({cell.config.training.seed for cell in record.cells}) < max(2, len(record.cells)):
        raise UserError(f"{path}: a record is one recipe with at least two seeds")
    record.folder.mkdir(parents=True, exist_ok=True)
    check_directories(record.cells)
    return record


def train_seed(record: Sweep, cell: Cell) -> None:
    """Train a seed unless it is complete, and measure the machine; UserError if it fails."""
    state = read_state(cell, "valid")
    if state.word == COMPLETE:
        return
    states = {cell.name: state}
    work = Jobs(record, "valid", shares(1), states, lambda cell, state: print(cell.name, state.word, flush=True))
    work.run([cell])
    if work.signals:
        sys.exit(128 + work.signals[0])  # what was training is saved
    if read_state(cell, "valid").word != COMPLETE:
        raise UserError(f"{cell.name} is not complete; see {cell.output}")
    facts = {"processor": processor(), "cores": CORES, "flops_per_second": product_rates(ROUNDS)}
    write_atomically(cell.run_dir / MACHINE, json.dumps(facts, indent=1) + "\n")


def row(cell: Cell) -> list[str]:
    """The seed, its BLEU and minutes, and the machine's rates."""
    machine, newest = read_json_object(cell.run_dir / MACHINE), good_steps(cell.run_dir)[-1]
    minutes = Progress.from_notes(read_notes(cell.run_dir, newest)).seconds / 60
    rates = [f"{rate / 1e9:.0f} {name}" for name, rate in machine.get("flops_per_second", {}).items()]
    bleu = f"{read_state(cell, 'valid').bleu:.2f}"
    return [str(cell.config.training.seed), bleu, f"{minutes:.1f}", ", ".join(rates), str(machine.get("processor", ""))]


if __name__ == "__main__":
    main()
