"""How far a run is: what it notes in its checkpoints, what it tells in its metrics, and when it must not go on."""

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from data.batches.packing import Batch
from data.batches.stream import BatchStream
from training.config import TrainingConfig
from training.devices.distributed import added, is_first
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
    batches: str = "0" * 64  # a digest of all batches so far: proof of what the parameters have seen

    def after_evaluation(self, step: int, bleu: float) -> "Progress":
        """Progress with one more BLEU in it; one that is not a number is never the best."""
        if bleu > self.best_bleu:
            return replace(self, best_bleu=bleu, best_step=step, stale=0, evaluated=step)
        return replace(self, stale=self.stale + 1, evaluated=step)

    def after_batch(self, batch: Batch, step: int, first_row: int = 0) -> "Progress":
        """Progress with the batch of update ``step`` in it, or with those of its rows from ``first_row`` on.

        The digest is the sum of each row's SHA-256, which its step and its place are part of. Processes that read a
        part of the rows each add to the same sum, however many there are.
        """
        total = int(self.batches, 16)
        for place, row in enumerate(zip(*batch, strict=True), first_row):
            digest = hashlib.sha256(f"{step} {place}".encode())
            for array in row:
                digest.update(np.ascontiguousarray(array).data)
            total += int.from_bytes(digest.digest())
        return replace(self, batches=f"{total % 2**256:064x}")

    def noted(self) -> dict[str, Any]:
        """What a checkpoint notes: of the batches, those of all processes."""
        return asdict(replace(self, batches=added(self.batches)))

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "Progress":
        """What a checkpoint noted; its batches are the first process's, since they are added up."""
        progress = cls(**notes)
        return progress if is_first() else replace(progress, batches=cls().batches)

    def is_exhausted(self, patience: int) -> bool:
        """Early stopping: too many evaluations without a better BLEU."""
        return bool(patience) and self.stale >= patience


def find_last_step(config: TrainingConfig, stream: BatchStream) -> int:
    """The step at which the run is complete, by steps or by epochs, whichever comes first."""
    by_epochs = sum(stream.steps_in(epoch) for epoch in range(config.epochs)) or math.inf
    return int(min(config.steps or math.inf, by_epochs))


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
