"""What is due after each update: a line of metrics, a save, an evaluation, a pause. Steps decide, and minutes pause.

The schedule of the learning rate is in optimizer.py.
"""

from dataclasses import dataclass
from typing import NamedTuple

from training.config import TrainingConfig
from training.progress import Progress
from training.run.pause import Pause


class Due(NamedTuple):
    """What is due after an update, in this order."""

    log: bool
    save: bool
    evaluate: bool
    pause: bool


@dataclass(frozen=True)
class Schedule:
    """When a run logs, saves, evaluates, pauses and is complete. Evaluations and pauses come right after a save."""

    config: TrainingConfig
    last_step: int

    def at(self, step: int, progress: Progress, pause: Pause) -> Due:
        """What is due after update ``step``. Several processes ask together, and get the same answer."""
        must_pause, evaluate = pause.is_due(step), self.must_evaluate(step, progress)
        by_steps = must_pause or evaluate or _is_multiple(step, self.config.save_every)
        save = by_steps or pause.save_is_due(step)
        return Due(_is_multiple(step, self.config.log_every), save, evaluate, must_pause)

    def must_evaluate(self, step: int, progress: Progress) -> bool:
        """Whether the state at ``step`` has yet to be evaluated; that of step 0 never has."""
        is_turn = _is_multiple(step, self.config.eval_every) or step >= self.last_step
        return is_turn and progress.evaluated < step

    def is_complete(self, step: int, progress: Progress) -> bool:
        """Whether the run ends at ``step``: at its last, or early because evaluations get no better."""
        return step >= self.last_step or progress.is_exhausted(self.config.patience)


def _is_multiple(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
