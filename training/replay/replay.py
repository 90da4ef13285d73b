"""Updates of a run, taken again from a checkpoint or the start.

Nothing of an update is stored, since all of it follows from the state before it, the config and the corpus: the batch
from the step, the dropout from seed and step. On the machine and the versions of the run, all bits come out the same.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from data.batches.packing import Batch
from data.batches.stream import BatchStream
from model.config import ModelConfig
from model.loss import Loss
from model.transformer import Params, build
from training.config import TrainingConfig
from training.progress import Progress, training_metrics
from training.run.checkpoint import good_steps, notes, restore
from training.run.metrics import MEASURED
from training.state import TrainState, init_state, reset_sums
from training.step import Reading, make_gradients, make_train_step


@dataclass(frozen=True)
class Compiled:
    """What runs on the device for one config, compiled once for all runs that share it."""

    train_step: Callable[[TrainState, Batch], tuple[TrainState, Reading]]
    gradients: Callable[[Params, Batch, Int[Array, ""]], tuple[Params, Loss]]


@cache
def compile_for(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> Compiled:
    """The update of training, and what it is made of."""
    graphdef = build(model, vocab_size)
    return Compiled(
        make_train_step(graphdef, training),
        jax.jit(make_gradients(graphdef, training)),
    )


@dataclass(frozen=True)
class Stretch:
    """What updates of a run are made with, until its config or its corpus changes."""

    model: ModelConfig
    training: TrainingConfig
    stream: BatchStream

    @property
    def compiled(self) -> Compiled:
        return compile_for(self.model, self.training, self.stream.tokenizer.vocab_size)

    def initial_state(self) -> TrainState:
        return init_state(self.model, self.training, self.stream.tokenizer.vocab_size)


@dataclass(frozen=True)
class Run:
    """A run directory to replay: ``stretch`` gives what update ``step`` (from 1) was made with, or a UserError."""

    folder: Path
    stretch: Callable[[int], Stretch]
    recorded: dict[int, dict[str, Any]]  # lines of metrics on training, by step

    def logs_after(self, step: int, log_every: int) -> bool:
        """Whether the sums became a line of metrics at ``step``: the lines tell, since log_every may have changed."""
        return step in self.recorded or (step > max(self.recorded, default=0) and step % log_every == 0)

    @property
    def reached(self) -> int:
        """The last step that a checkpoint or a line of metrics tells of."""
        return max([0, *good_steps(self.folder)[-1:], *self.recorded])


@dataclass(frozen=True)
class Taken:
    """An update that was taken again. ``loss`` is smoothed, per target token; ``line`` stands at steps that log."""

    step: int
    batch: str  # SHA-256 of its arrays
    loss: float
    gradient_norm: float
    skipped: bool
    line: dict[str, float] | None


class Replay:
    """A run at some step, on its way again. ``batches`` is the SHA-256 of all so far, as checkpoints note it."""

    def __init__(self, run: Run, step: int) -> None:
        """Take the run up at the good checkpoint of ``step``, or at 0 before its first update."""
        self.run, self.step = run, step
        stretch = run.stretch(step + 1)
        self.state = restored(run, step) if step else stretch.initial_state()
        self.batches: str = notes(run.folder, step)["batches"] if step else Progress().batches

    @property
    def next_stretch(self) -> Stretch:
        return self.run.stretch(self.step + 1)

    def take(self) -> Taken:
        """The next update, exactly as training takes it; the state before it is gone."""
        stretch, step = self.next_stretch, self.step + 1
        batch = stretch.stream.batch(self.step)
        self.state, reading = stretch.compiled.train_step(self.state, batch)
        self.step, self.batches = step, Progress(batches=self.batches).after_batch(batch, step).batches
        line = None
        if self.run.logs_after(step, stretch.training.log_every):
            line = line_of(self.state, step, stretch.training)
            self.state = reset_sums(self.state)
        skipped = int(reading.skipped_in_row) > 0
        return Taken(step, digest(batch), float(reading.loss), float(reading.gradient_norm), skipped, line)


def restored(run: Run, step: int) -> TrainState:
    """The state of a good checkpoint, its arrays bound to no device: else the update would be compiled once more."""
    state = restore(run.folder, step, jax.eval_shape(run.stretch(step + 1).initial_state))
    return jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)), state)


def digest(batch: Batch) -> str:
    """SHA-256 of a batch's arrays."""
    return Progress().after_batch(batch, 0).batches


def line_of(state: TrainState, step: int, config: TrainingConfig) -> dict[str, float]:
    """What metrics.jsonl says at ``step``, without what was measured."""
    sums, skipped = jax.device_get((state.sums, state.skipped))
    line = training_metrics(sums, skipped, step, step, 1.0, config)
    return {key: value for key, value in line.items() if key not in MEASURED}


def recorded_lines(run_dir: Path) -> dict[int, dict[str, Any]]:
    """The lines of metrics.jsonl on training by step, without what was measured; what cannot be read is left out."""
    path = run_dir / "metrics.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    entries = [entry for entry in map(_entry, lines) if entry.get("kind") == "train" and type(entry["step"]) is int]
    left_out = (*MEASURED, "step", "kind")
    return {entry["step"]: {key: entry[key] for key in entry if key not in left_out} for entry in entries}


def unlike_recorded(run: Run, taken: Taken) -> list[str]:
    """What the run's own line of metrics says otherwise, "key value recorded, value replayed"; none without a line."""
    recorded = run.recorded.get(taken.step)
    if taken.line is None or recorded is None:
        return []
    replayed = {key: value if math.isfinite(value) else str(value) for key, value in taken.line.items()}
    return [
        f"{key} {recorded.get(key)} recorded, {value} replayed"
        for key, value in replayed.items()
        if recorded.get(key) != value
    ]


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        return entry if isinstance(entry, dict) and "step" in entry else {}
    except (ValueError, RecursionError):
        return {}
