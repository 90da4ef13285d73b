"""How far a run is: what it notes in its checkpoints, what it tells in its metrics, and when it must not go on."""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.packing import Batch
from data.stream import BatchStream
from training.config import TrainingConfig
from training.optimizer import learning_rate
from training.state import Reading, Skipped, Sums


@dataclass(frozen=True)
class Progress:
    """What a run remembers beside its state: evaluations, time and batches up to a step."""

    best_bleu: float = -1.0
    best_step: int = 0
    stale: int = 0  # evaluations since the best
    evaluated: int = 0  # the last step that was evaluated
    seconds: float = 0.0  # in all sessions of the run
    batches: str = ""  # SHA-256 of all batches so far, in order: proof of what the parameters have seen

    def after_evaluation(self, step: int, bleu: float) -> "Progress":
        """Progress with one more BLEU in it; one that is not a number is never the best."""
        if bleu > self.best_bleu:
            return replace(self, best_bleu=bleu, best_step=step, stale=0, evaluated=step)
        return replace(self, stale=self.stale + 1, evaluated=step)

    def after_batch(self, batch: Batch) -> "Progress":
        """Progress with one more batch in it."""
        digest = hashlib.sha256(self.batches.encode())
        for array in batch:
            digest.update(np.ascontiguousarray(array).data)
        return replace(self, batches=digest.hexdigest())

    def is_exhausted(self, patience: int) -> bool:
        """Early stopping: too many evaluations without a better BLEU."""
        return bool(patience) and self.stale >= patience


def readings(
    sums: Sums, skipped: Skipped, step: int, last_step: int, steps_per_second: float, config: TrainingConfig
) -> dict[str, float]:
    """What a line of metrics says of the updates since the last one; NaN where all of them were skipped."""
    total = {name: float(value) for name, value in sums._asdict().items()}
    tokens, steps = total["target_tokens"] or math.nan, total["steps"] or math.nan
    return {
        "loss": total["smoothed"] / tokens,
        "cross_entropy": total["cross_entropy"] / tokens,
        "gradient_norm": total["gradient_norm"] / steps,
        "learning_rate": float(learning_rate(config)(step - 1 - int(skipped.in_all))),
        "skipped": float(skipped.since_log),
        "tokens_per_second": (total["source_tokens"] + total["target_tokens"]) / steps * steps_per_second,
        "target_tokens_per_second": total["target_tokens"] / steps * steps_per_second,
        "minutes_left": (last_step - step) / steps_per_second / 60,
    }


def refuse_divergence(reading: Reading, step: int, limit: int, stream: BatchStream, run_dir: Path) -> None:
    """UserError if update ``step`` is the last of ``limit`` in a row that were skipped, as not finite.

    Waits for the update.
    """
    in_row = int(reading.skipped_in_row)
    if in_row >= limit:
        epoch, batch = stream.epoch_of(step - 1)
        raise UserError(
            f"loss, gradient or update were not finite {in_row} times in a row, up to step {step} (batch {batch} of "
            f"epoch {epoch}, from 0); {run_dir} stays at its last checkpoint. python scripts/replay.py {run_dir} "
            f"--step {step - in_row + 1} shows where it began; a lower training.learning_rate with "
            "allow_changes=true may help"
        )
