"""How far each cell of a sweep is. The run directories are the only record."""

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
from experiment.reports import own_report
from experiment.sweep.cells import Cell
from training.progress import Progress
from training.run.checkpoint import read_notes
from training.run.layout import CONFIG
from training.run.lock import is_in_use
from training.run.metrics import read_metrics
from training.run.retention import good_steps

WAITING, INTERRUPTED, TRAINED, COMPLETE = "waiting", "interrupted", "trained", "complete"
TRAINING, EVALUATING, FAILED, ELSEWHERE = "training", "evaluating", "failed", "in use elsewhere"
# Harmless changes with which the scores that are there are those of something else.
OF_SCORES = "data.test", "decoding.checkpoint", "decoding.ensemble"


@dataclass(frozen=True)
class State:
    """What a cell does, and what its last lines of metrics say."""

    word: str
    step: int = 0
    bleu: float | None = None  # of the last validation
    minutes_left: float | None = None


def read_state(cell: Cell, set_name: str) -> State:
    """The state of a cell that no process works at."""
    steps = good_steps(cell.run_dir)
    if not steps:
        return with_metrics(cell, WAITING)
    progress = Progress(**read_notes(cell.run_dir, steps[-1]))
    if not is_trained(cell, steps[-1], progress):
        return with_metrics(cell, INTERRUPTED)
    return with_metrics(cell, COMPLETE if is_scored(cell, set_name, steps[-1], progress) else TRAINED)


def observe(cell: Cell, set_name: str) -> State:
    """The state of a cell at which another process may work."""
    return with_metrics(cell, ELSEWHERE) if is_in_use(cell.run_dir) else read_state(cell, set_name)


def is_trained(cell: Cell, newest: int, progress: Progress) -> bool:
    """Whether nothing is left to train and to validate after the newest checkpoint."""
    training = cell.config.training
    return progress.evaluated == newest and (newest >= training.steps or progress.is_exhausted(training.patience))


def is_scored(cell: Cell, set_name: str, newest: int, progress: Progress) -> bool:
    """Whether there is a report with its sentences, and of the checkpoint that counts, not of an earlier one."""
    path = own_report(cell.run_dir, set_name)
    report, steps = read_json_object(path), {"best": progress.best_step or newest, "latest": newest}
    checkpoint = "latest" if set_name == "valid" else cell.config.decoding.checkpoint
    return sentences_beside(path).exists() and report.get("step", -1) == steps.get(checkpoint, report.get("step"))


def with_metrics(cell: Cell, word: str) -> State:
    """The state with the last step, BLEU and remaining minutes that the run recorded."""
    last: dict[str, Any] = {}
    for line in read_metrics(cell.run_dir, measured=True):
        last |= line
    numbers = {key: value for key, value in last.items() if isinstance(value, int | float)}
    return State(word, int(numbers.get("step", 0)), numbers.get("bleu"), numbers.get("minutes_left"))


def check_directories(cells: list[Cell]) -> None:
    """UserError if a cell's directory holds a run of another config, or a longer one, before anything starts."""
    for cell in cells:
        steps = good_steps(cell.run_dir)
        if not (cell.run_dir / CONFIG).exists() or not steps:
            continue
        recorded = load_run_config(cell.run_dir)
        kinds, differences = classify_changes(recorded, cell.config), find_differences(recorded, cell.config)
        if lines := [differences[key] for key, kind in kinds.items() if kind != "nothing" or key in OF_SCORES]:
            described = f"{cell.run_dir} is a run of another config: {'; '.join(lines)}"
            raise UserError(f"{described}. Move it away, or give the sweep another name")
        if steps[-1] > cell.config.training.steps:
            described = f"{cell.run_dir} is at step {steps[-1]}, beyond training.steps={cell.config.training.steps}"
            raise UserError(f"{described}. Move it away, or give the sweep another name")


def table_of_states(cells: Sequence[Cell], states: dict[str, State], hidden: Sequence[str] = ()) -> Table:
    """A row for each cell, but for those in ``hidden`` states; the note counts all."""
    rows = [row_of(cell, states[cell.name]) for cell in cells if states[cell.name].word not in hidden]
    counts = Counter(states[cell.name].word for cell in cells)
    note = ", ".join(f"{count} {word}" for word, count in counts.items())
    return Table("Cells", note, ["cell", "state", "step", "BLEU, valid", "minutes left"], rows)


def row_of(cell: Cell, state: State) -> list[str]:
    steps = f"{state.step} / {cell.config.training.steps or '?'}"
    left = f"{state.minutes_left:.0f}" if state.word in (TRAINING, ELSEWHERE) and state.minutes_left is not None else ""
    return [cell.name, state.word, steps, "" if state.bleu is None else f"{state.bleu:.2f}", left]
