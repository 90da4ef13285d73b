"""What is due after an update, by steps; time limits only pause. Learning-rate schedules are in optimizer.py."""

from typing import NamedTuple

from data.batches.stream import BatchStream
from training.config import TrainingConfig
from training.progress import Progress
from training.run.pause import Pause


class Due(NamedTuple):
    """What is due after an update, in this order."""

    log: bool
    save: bool
    evaluate: bool
    pause: bool


class Schedule(NamedTuple):
    """When a run logs, saves, evaluates, pauses and is complete. Evaluations and pauses come right after a save."""

    config: TrainingConfig
    stream: BatchStream

    def at(self, step: int, progress: Progress, pause: Pause) -> Due:
        """What is due after update ``step``. If there are several processes, all must ask, and get the same answer."""
        must_pause, evaluate = pause.is_due(step), self.must_evaluate(step, progress)
        by_steps = must_pause or evaluate or _is_multiple(step, self.config.save_every)
        save = by_steps or pause.save_is_due(step)
        return Due(_is_multiple(step, self.config.log_every), save, evaluate, must_pause)

    def must_evaluate(self, step: int, progress: Progress) -> bool:
        """Whether the state at ``step`` still has to be evaluated; never true at step 0."""
        is_turn = _is_multiple(step, self.config.eval_every) or self.is_last(step)
        return is_turn and progress.evaluated < step

    def is_complete(self, step: int, progress: Progress) -> bool:
        """Whether the run ends at ``step``: its last step, or an early stop because evaluations no longer improve."""
        return self.is_last(step) or progress.is_exhausted(self.config.patience)

    def is_last(self, step: int) -> bool:
        """Whether the run has done all its steps or epochs: the next batch would belong to a further epoch."""
        steps, epochs = self.config.steps, self.config.epochs
        return 0 < steps <= step or bool(epochs and self.stream.epoch_of(step)[0] >= epochs)

    def expected_end(self, step: int) -> int:
        """The last step, if epochs from the current one on are as long as the very first window suggests."""
        ends = [self.config.steps] if self.config.steps else []
        if self.config.epochs:
            epoch, index = self.stream.epoch_of(step)
            rest = self.stream.expected_steps(self.stream.row_of(epoch, index))
            ends.append(step + rest + self.stream.expected_steps() * (self.config.epochs - epoch - 1))
        return min(ends)

    def describe_end(self, step: int) -> str:
        end = self.expected_end(step)
        return f"{end}" if end == self.config.steps else f"about {end}"


def _is_multiple(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
