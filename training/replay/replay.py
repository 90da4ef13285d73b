"""Replay updates of a run, from a checkpoint or from the start.

Nothing about an update is stored, because everything follows from the state before it, the config and the corpus: the
batch from the step, the dropout from seed and step. With the run's machine and versions, every bit is reproduced.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from common.errors import UserError, write_note
from data.batches.packing import Batch
from data.batches.stream import BatchStream
from model.config import ModelConfig
from model.transformer import Params, build
from training.config import TrainingConfig
from training.devices.any_mesh import Programs, make_programs
from training.progress import Progress, digest_batch, training_metrics
from training.run.checkpoint import read_notes, restore
from training.run.config_history import change_steps
from training.run.metrics import MEASURED
from training.run.retention import good_steps
from training.state import TrainState, init_state, initial_state_from, reset_sums, state_shapes


@cache
def programs_of(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> Programs:
    """The programs of these configs, compiled once for all runs that share them."""
    return make_programs(build(model, vocab_size), training)


def bound_to_no_device(tree: Any) -> Any:
    """Arrays that are not committed to a device, as restored ones are, so that an update is not compiled again."""
    return jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)), tree)


@dataclass(frozen=True)
class Setup:
    """What updates are computed with until a run's config or corpus changes."""

    model: ModelConfig
    training: TrainingConfig
    stream: BatchStream
    initial_params: Callable[[], Params] | None = None  # of ``training.init_from``; None: drawn from the seed

    @property
    def programs(self) -> Programs:
        return programs_of(self.model, self.training, self.stream.tokenizer.vocab_size)

    def initial_state(self) -> TrainState:
        if self.initial_params:
            return initial_state_from(bound_to_no_device(self.initial_params()), self.training)
        return init_state(self.model, self.training, self.stream.tokenizer.vocab_size)


@dataclass(frozen=True)
class ReplayedUpdate:
    """A replayed update. ``loss`` is the objective per target token; ``metrics`` exist at steps that log."""

    step: int
    batch: str  # SHA-256 of its arrays
    loss: float
    gradient_norm: float
    skipped: bool
    metrics: dict[str, float] | None


@dataclass(frozen=True)
class RecordedRun:
    """A run directory to replay; ``setup`` returns the Setup of update ``step`` (from 1) or raises UserError."""

    folder: Path
    setup: Callable[[int], Setup]
    initial_model: ModelConfig
    training: TrainingConfig  # by the newest config
    metrics: dict[int, dict[str, Any]]  # recorded training metrics by step, without measured values

    def logs_at(self, step: int, log_every: int) -> bool:
        """Whether the sums were logged and reset at ``step``; goes by recorded lines, since log_every may change."""
        return step in self.metrics or (step > max(self.metrics, default=0) and step % log_every == 0)

    @property
    def last_step(self) -> int:
        """The last step for which there is a checkpoint or a line of metrics."""
        return max([0, *good_steps(self.folder)[-1:], *self.metrics])

    def check_step(self, step: int) -> None:
        """UserError for a step that the run has not taken and, according to its config, never will."""
        steps, epochs = self.training.steps, self.training.epochs
        if step <= self.last_step:
            return
        if steps and step > steps:
            raise UserError(f"--step {step} lies beyond the end of {self.folder}, training.steps={steps}")
        if epochs and self.setup(step).stream.epoch_of(step - 1)[0] >= epochs:
            raise UserError(f"--step {step} lies beyond the end of {self.folder}, training.epochs={epochs}")

    def restore_state(self, step: int) -> TrainState:
        """The state of an intact checkpoint."""
        setup = self.setup(step + 1)
        shapes = state_shapes(setup.model, setup.training, setup.stream.tokenizer.vocab_size)
        return bound_to_no_device(restore(self.folder, step, shapes))


class Replay:
    """A run at a step. ``batches`` is the SHA-256 of all batches so far, as noted in checkpoints."""

    def __init__(self, run: RecordedRun, step: int) -> None:
        self.run, self.step = run, step
        self.state = run.restore_state(step) if step else self.next_setup.initial_state()
        self.batches: str = Progress.from_notes(read_notes(run.folder, step)).batches if step else Progress().batches

    @property
    def next_setup(self) -> Setup:
        return self.run.setup(self.step + 1)

    def take_update(self) -> ReplayedUpdate:
        """Take the next update exactly as training does. The state before it is donated."""
        setup, step = self.next_setup, self.step + 1
        batch = setup.stream.batch(self.step)
        self.state, report = setup.programs.train_step(self.state, batch)
        self.step, self.batches = step, Progress(batches=self.batches).after_batch(digest_batch(batch, step)).batches
        metrics = None
        if self.run.logs_at(step, setup.training.log_every):
            sums, skips = jax.device_get((self.state.sums, self.state.skipped))
            values = training_metrics(sums, skips, step, step, 1.0, setup.training)
            metrics = {key: value for key, value in values.items() if key not in MEASURED}
            self.state = reset_sums(self.state)
        loss, norm, skipped = float(report.loss), float(report.gradient_norm), int(report.skipped_in_row) > 0
        return ReplayedUpdate(step, hash_batch(batch), loss, norm, skipped, metrics)


def start_replay(run: RecordedRun, start: int, step: int) -> Replay:
    """Start a replay from ``start``; UserError if the corpus of an update up to ``step`` no longer exists."""
    run.setup(step)
    for changed in reversed([changed for changed in change_steps(run.folder) if start < changed < step]):
        try:
            run.setup(changed)
        except UserError as error:
            needed = f"a good checkpoint between steps {changed} and {step - 1}, and there is none"
            problem = f"update {step} of {run.folder} needs {needed} (a larger training.keep keeps more of them)"
            raise UserError(f"{problem}; earlier updates cannot be repeated: {error}") from None
    return Replay(run, start)


def show_progress(steps: range, *replays: Replay) -> Iterable[int]:
    """The steps, with a note on how many there are and, on a terminal, a progress bar."""
    if steps:
        folders = " and ".join(str(replay.run.folder) for replay in replays)
        start = f"the checkpoint at step {steps[0]}" if steps[0] else "the start"
        write_note(f"{folders}: repeating {count_updates(len(steps))} from {start}")
    return tqdm(steps, unit="step", leave=False, disable=None)


def count_updates(count: int) -> str:
    return f"{count:,} update" if count == 1 else f"{count:,} updates"


def hash_batch(batch: Batch) -> str:
    return Progress().after_batch(digest_batch(batch, 0)).batches


def to_json(report: Any) -> str:
    """The report as one JSON object; NaN and infinities become text, as JSON lacks them."""
    plain = json.loads(json.dumps(asdict(report)), parse_constant=lambda name: str(float(name)))
    return json.dumps(plain, ensure_ascii=False)
