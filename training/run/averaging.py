"""The mean of the parameters of several checkpoints of one run (Vaswani et al. 2017, section 6.1).

The last steps of a run wander around an optimum, and the mean of several is often nearer to it than any of them.
Unlike an ensemble, it translates as fast as one model. An average is stored in ``averages/NAME``, to be used with
``decoding.checkpoint=NAME``; retention does not touch it.
"""

from pathlib import Path
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from common.errors import UserError
from model.config import ModelConfig
from model.transformer import Params
from training.config import TrainingConfig
from training.progress import rank
from training.run.checkpoint import load_params
from training.run.layout import METRICS, average_path, checkpoint_path
from training.run.metrics import parse_metrics
from training.run.write_trees import begin_writing

By = Literal["last", "best"]


class Validated(NamedTuple):
    """The scores of a validation, from a line of metrics."""

    bleu: float
    loss: float


def write_average(
    run_dir: Path, steps: list[int], name: str, *, by: By, bleu: dict[int, float], config: ModelConfig, vocab_size: int
) -> Path:
    """Save the mean over the intact checkpoints at ``steps`` as ``averages/NAME``, and return that directory."""
    # Keys are text, since JSON would turn numbers into text and sort them differently.
    notes = {"steps": steps, "by": by, "bleu": {str(step): bleu[step] for step in steps if step in bleu}}
    params = mean_params(run_dir, steps, config, vocab_size)
    folder = average_path(run_dir, name)
    begin_writing(folder, {"params": params}, max(steps), notes)()
    return folder


def mean_params(run_dir: Path, steps: list[int], config: ModelConfig, vocab_size: int) -> Params:
    """The mean of the inference parameters, summed in float64 and rounded once; one checkpoint keeps its exact bits."""
    first, *rest = (checkpoint_path(run_dir, step) for step in steps)
    total = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), load_params(first, config, vocab_size))
    for directory in rest:
        params = load_params(directory, config, vocab_size)
        total = jax.tree.map(lambda leaf, other: leaf + np.asarray(other), total, params)
    return jax.tree.map(lambda leaf: jnp.asarray((leaf / len(steps)).astype(np.float32)), total)


def choose_steps(
    run_dir: Path, good: list[int], count: int, by: By, validated: dict[int, Validated], training: TrainingConfig
) -> list[int]:
    """The last ``count`` good steps, or the best validated ones (ties: the later), oldest first; or UserError."""
    if count < 1:
        raise UserError(f"--{by} must be at least 1, not {count}")
    by_rank = sorted(set(good) & set(validated), key=lambda step: (*rank(*validated[step]), step))
    candidates = good if by == "last" else by_rank
    if len(candidates) < count:
        what = "good checkpoint" if len(candidates) == 1 else "good checkpoints"
        known, often = (" with a known validation BLEU", "eval_every") if by == "best" else ("", "save_every")
        # Checkpoints written between two evaluations are kept too.
        each = 1 + (training.eval_every - 1) // training.save_every if by == "best" and training.save_every else 1
        advice = f"training.keep={count * each} keeps enough, and training.{often}=N sets how often one is written"
        raise UserError(f"{run_dir} has {len(candidates)} {what}{known}, not {count}: {advice}")
    return sorted(candidates[-count:])


def read_validated(run_dir: Path) -> dict[int, Validated]:
    """Validations by step from the run's metrics.jsonl, using each step's last line; UserError names a damaged line."""
    path = Path(run_dir) / METRICS
    found: dict[int, Validated] = {}
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else [], start=1):
        try:
            entry = parse_metrics(line)
            if entry["kind"] == "valid":
                found[entry["step"]] = Validated(float(entry["bleu"]), float(entry.get("loss", "nan")))
        except (ValueError, KeyError, TypeError):
            advice = "continue the run, or delete that line"
            raise UserError(f"{path}:{number} is not a line of metrics: {advice}") from None
    return found
