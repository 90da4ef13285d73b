"""The progress of a run: what its checkpoints record, what its metrics report, and when it must stop."""

import hashlib
import math
from collections import deque
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from data.batches.packing import Batch
from data.batches.stream import BatchStream
from training.config import TrainingConfig
from training.devices.distributed import is_first, sum_over_processes
from training.factors import factors_by_name
from training.optimizer import learning_rate
from training.state import Skipped, Sums
from training.step import StepReport

LAG = 2  # steps
FAR_ABOVE = 0.05  # of the lowest validation loss


@dataclass(frozen=True)
class Progress:
    """What a checkpoint records besides the state: evaluations, training time and batches up to its step."""

    best_bleu: float = -1.0
    best_step: int = 0
    best_loss: float | None = None  # of that evaluation; None: not finite, or from a version that did not record it
    stale: int = 0  # evaluations since the last one that was better than all before it
    evaluated: int = 0  # the last step that was evaluated
    seconds: float = 0.0  # over all sessions of the run
    batches: str = "0" * 64  # digest of all batches so far: proof of what the parameters have seen

    def after_evaluation(self, step: int, bleu: float, loss: float) -> "Progress":
        """Progress including one more evaluation: ``rank`` decides which is the best; ties go to the later one.

        An equal score does not reset the patience of early stopping: a model that no longer changes must stop.
        """
        new, best = rank(bleu, loss), rank(self.best_bleu, self.best_loss)
        waited = replace(self, evaluated=step, stale=0 if new > best else self.stale + 1)
        finite = loss if math.isfinite(loss) else None
        return waited if new < best else replace(waited, best_bleu=bleu, best_step=step, best_loss=finite)

    def without_best_score(self) -> "Progress":
        """Progress in which the next evaluation becomes the best, whatever its score; until then, the best step stays.

        For another validation set or search, or training data from another domain: their scores are not comparable.
        """
        return replace(self, best_bleu=Progress.best_bleu, best_loss=None, stale=0)

    def after_batch(self, digest: int) -> "Progress":
        """Progress including one more batch with this ``digest_batch``."""
        return replace(self, batches=f"{(int(self.batches, 16) + digest) % 2**256:064x}")

    def to_notes(self) -> dict[str, Any]:
        """The notes of a checkpoint, with the batches of all processes combined."""
        return asdict(replace(self, batches=sum_over_processes(self.batches)))

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "Progress":
        """Progress from a checkpoint's notes, or UserError. Only the first process keeps the digest, to be summed."""
        try:
            progress = cls(**notes)
            *numbers, batches = vars(progress).values()
            math.fsum(number or 0 for number in numbers)  # TypeError for anything else
            int(batches, 16)
        except (TypeError, ValueError) as error:
            raise UserError(f"a checkpoint's notes are not from a training run ({error}): move it away") from error
        return progress if is_first() else replace(progress, batches=cls().batches)

    def is_exhausted(self, patience: int) -> bool:
        """Early stopping: too many evaluations without a better one."""
        return bool(patience) and self.stale >= patience


def digest_batch(batch: Batch, step: int, first_row: int = 0, counted: Container[int] | None = None) -> int:
    """The digest of the batch of update ``step``, or of its ``counted`` rows (default: all) from ``first_row`` on.

    It sums the SHA-256 of each row with its step and place, so the total over all processes is always the same.
    """
    total = 0
    for place, row in enumerate(zip(*batch, strict=True), first_row):
        if counted is not None and place not in counted:
            continue
        digest = hashlib.sha256(f"{step} {place}".encode())
        for array in row:
            digest.update(np.ascontiguousarray(array).data)
        total += int.from_bytes(digest.digest())
    return total


def rank(bleu: float, loss: float | None) -> tuple[float, float]:
    """How good an evaluation is: by BLEU, then by loss, as BLEU may stay 0 early in training; NaN is the worst."""
    known = -loss if loss is not None and math.isfinite(loss) else -math.inf
    return -math.inf if math.isnan(bleu) else bleu, known


def describe_rise(losses: Sequence[tuple[int, float]]) -> str | None:
    """A warning if the last of these losses, each with its step, is the first to rise far above the lowest."""

    def has_risen(count: int) -> bool:
        return losses[count - 1][1] > (1 + FAR_ABOVE) * min(loss for _, loss in losses[:count])

    if not losses or not has_risen(len(losses)) or any(map(has_risen, range(1, len(losses)))):
        return None
    (step, lowest), (_, now) = min(losses, key=lambda each: each[1]), losses[-1]
    return (
        f"validation loss has risen from {lowest:.4g} at step {step} to {now:.4g}: the model is overfitting the "
        "training pairs. A higher model.dropout, fewer steps or training.patience may help"
    )


def training_metrics(
    sums: Sums, skipped: Skipped, step: int, last_step: int, steps_per_second: float, config: TrainingConfig
) -> dict[str, float]:
    """A line of metrics for the updates since the last line; values are NaN if all of them were skipped."""
    total = {name: float(value) for name, value in sums._asdict().items()}
    tokens, steps = total["target_tokens"] or math.nan, total["steps"] or math.nan
    applied = step - 1 - int(skipped.in_all)
    divergence = {} if config.consistency == "none" else {"divergence": total["divergence"] / tokens}
    return {
        "loss": total["smoothed"] / tokens,
        "cross_entropy": total["cross_entropy"] / tokens,
        **divergence,
        "gradient_norm": total["gradient_norm"] / steps,
        "learning_rate": float(learning_rate(config)(applied)),
        **factors_by_name(config, step - 1, applied),
        "skipped": float(skipped.since_log),
        "tokens_per_second": (total["source_tokens"] + total["target_tokens"]) / steps * steps_per_second,
        "target_tokens_per_second": total["target_tokens"] / steps * steps_per_second,
        "minutes_left": (last_step - step) / steps_per_second / 60,
    }


class DivergenceCheck:
    """Stops a run after too many skipped updates in a row.

    The report of a step is fetched ``LAG`` steps later: while the program waits, the device still has steps to take,
    and a signal never waits for more than these.
    """

    def __init__(self, limit: int, stream: BatchStream, run_dir: Path) -> None:
        self.limit, self.stream, self.run_dir = limit, stream, run_dir
        self.pending: deque[tuple[int, StepReport]] = deque()

    def add(self, step: int, report: StepReport) -> None:
        """Add the report of a step, and check the one from ``LAG`` steps before."""
        self.pending.append((step, report))
        if len(self.pending) > LAG:
            self._check(*self.pending.popleft())

    def wait(self) -> None:
        """Wait for the last update; UserError if one of them completes ``limit`` non-finite updates in a row."""
        while self.pending:
            self._check(*self.pending.popleft())

    def _check(self, step: int, report: StepReport) -> None:
        in_row = int(report.skipped_in_row)
        if in_row >= self.limit:
            epoch, batch = self.stream.epoch_of(step - 1)
            raise UserError(
                f"loss, gradient or update was not finite {in_row} times in a row, up to step {step} (batch {batch} "
                f"of epoch {epoch}, from 0); {self.run_dir} stays at its last checkpoint. python scripts/replay.py "
                f"{self.run_dir} --step {step - in_row + 1} shows where it began; a lower training.learning_rate with "
                "allow_changes=true may help"
            )
