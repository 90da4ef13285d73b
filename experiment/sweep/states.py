"""The state of each cell of a sweep. The run directories are the only record."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import UserError
from common.files import read_json_object
from common.text_table import Table
from configs.changes import classify_changes
from configs.load import find_differences, load_run_config
from evaluation.report import sentences_beside
from experiment.reports import find_mismatch, own_report
from experiment.sweep.cells import Cell
from training.progress import Progress
from training.run.checkpoint import read_notes
from training.run.lock import is_in_use
from training.run.metrics import read_metrics
from training.run.retention import good_steps

WAITING, INTERRUPTED, TRAINED, COMPLETE = "waiting", "interrupted", "trained", "complete"
TRAINING, EVALUATING, FAILED, ELSEWHERE = "training", "evaluating", "failed", "in use elsewhere"
# Harmless changes that make existing scores those of something else.
OF_SCORES = "data.test", "decoding.checkpoint", "decoding.ensemble"


@dataclass(frozen=True)
class State:
    """What a cell is doing, and the values in its last lines of metrics."""

    word: str
    step: int = 0
    bleu: float | None = None  # of the last validation
    minutes_left: float | None = None


def read_state(cell: Cell, set_name: str) -> State:
    """The state of a cell that no job of this sweep is working on."""
    if is_in_use(cell.run_dir):
        return with_metrics(cell, ELSEWHERE)
    steps = good_steps(cell.run_dir)
    if not steps:
        return with_metrics(cell, WAITING)
    progress, training = Progress.from_notes(read_notes(cell.run_dir, steps[-1])), cell.config.training
    has_ended = steps[-1] >= training.steps or progress.is_exhausted(training.patience)
    if not has_ended or progress.evaluated != steps[-1]:
        return with_metrics(cell, INTERRUPTED)
    return with_metrics(cell, COMPLETE if is_scored(cell, set_name, steps[-1], progress) else TRAINED)


def is_scored(cell: Cell, set_name: str, newest: int, progress: Progress) -> bool:
    """Whether there is a report with its sentences on the checkpoint to be scored, not on an earlier one."""
    path = own_report(cell.run_dir, set_name)
    report, steps = read_json_object(path), {"best": progress.best_step or newest, "latest": newest}
    checkpoint = "latest" if set_name == "valid" else cell.config.decoding.checkpoint
    if find_mismatch(cell.run_dir, path, cell.config.decoding.checkpoint, set_name):
        return False
    return sentences_beside(path).exists() and report.get("step", -1) == steps.get(checkpoint, report.get("step"))


def with_metrics(cell: Cell, word: str) -> State:
    """The state with the last step, BLEU and remaining minutes that the run recorded."""
    last: dict[str, Any] = {}
    for line in read_metrics(cell.run_dir, measured=True):
        last |= line
    numbers = {key: value for key, value in last.items() if isinstance(value, int | float)}
    return State(word, int(numbers.get("step", 0)), numbers.get("bleu"), numbers.get("minutes_left"))


def check_directories(cells: list[Cell]) -> None:
    """UserError, before anything starts, if a cell's directory holds a run of another config or a longer run."""
    for cell in cells:
        if not (steps := good_steps(cell.run_dir)):
            continue
        recorded = load_run_config(cell.run_dir)
        kinds, differences = classify_changes(recorded, cell.config), find_differences(recorded, cell.config)
        problem = ""
        if lines := [differences[key] for key, kind in kinds.items() if kind != "nothing" or key in OF_SCORES]:
            problem = f"a run of another config: {'; '.join(lines)}"
        elif steps[-1] > cell.config.training.steps:
            problem = f"at step {steps[-1]}, beyond training.steps={cell.config.training.steps}"
        if problem:
            raise UserError(f"{cell.run_dir} is {problem}. Move it away, or give the sweep another name")


def table_of_states(cells: Sequence[Cell], states: dict[str, State]) -> Table:
    """A row for each cell; the note counts them."""
    counts = Counter(states[cell.name].word for cell in cells)
    note = ", ".join(f"{count} {word}" for word, count in counts.items())
    rows = []
    for cell in cells:
        state = states[cell.name]
        left = f"{state.minutes_left:.0f}" if state.word == ELSEWHERE and state.minutes_left is not None else ""
        bleu = "" if state.bleu is None else f"{state.bleu:.2f}"
        rows.append([cell.name, state.word, f"{state.step} / {cell.config.training.steps}", bleu, left])
    return Table("Cells", note, ["cell", "state", "step", "BLEU, valid", "minutes left"], rows)
