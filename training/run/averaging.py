"""The mean of the parameters of several checkpoints of one run (Vaswani et al. 2017, section 6.1).

The steps at a run's end wander around an optimum, and the mean of some of them often lies nearer to it than any. Unlike
an ensemble, it translates as fast as one model. An average is kept in ``averages/NAME``, for ``decoding.checkpoint``;
the retention of checkpoints does not touch it.
"""

import json
import re
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from common.errors import UserError
from model.config import AVERAGE_NAME, ModelConfig
from model.transformer import Params
from training.run.checkpoint import inference_params, save_average

By = Literal["last", "best"]


def average(
    run_dir: Path, steps: list[int], name: str, *, by: By, bleu: dict[int, float], config: ModelConfig, vocab_size: int
) -> Path:
    """Keep the mean over the good checkpoints at ``steps`` as ``averages/NAME`` and return that directory.

    ``by`` and the ``bleu`` of the steps, where known, are noted in its manifest.
    """
    refuse_name(name)
    params = mean_params(run_dir, steps, config, vocab_size)
    notes = {"steps": steps, "by": by, "bleu": {step: bleu[step] for step in steps if step in bleu}}
    return save_average(run_dir, name, params, max(steps), notes)


def mean_params(run_dir: Path, steps: list[int], config: ModelConfig, vocab_size: int) -> Params:
    """The mean of the parameters that inference would use, leaf by leaf, one checkpoint in memory at a time.

    Summed in float64 and rounded once: the mean of one checkpoint has its bits.
    """
    first, *rest = steps
    total = jax.tree.map(_as_float64, inference_params(run_dir, first, config, vocab_size))
    for step in rest:
        params = inference_params(run_dir, step, config, vocab_size)
        total = jax.tree.map(lambda leaf, other: leaf + _as_float64(other), total, params)
    return jax.tree.map(lambda leaf: jnp.asarray((leaf / len(steps)).astype(np.float32)), total)


def choose_steps(run_dir: Path, good: list[int], count: int, by: By, bleu: dict[int, float]) -> list[int]:
    """The last ``count`` of the ``good`` steps, or those of the best BLEU among the steps with one; oldest first.

    Of equal BLEU, the later step is taken. Raises UserError where there are too few.
    """
    if count < 1:
        raise UserError(f"--{by} must be at least 1, not {count}")
    candidates = good if by == "last" else sorted(set(good) & set(bleu), key=lambda step: (bleu[step], step))
    if len(candidates) < count:
        what = "good checkpoint" if len(candidates) == 1 else "good checkpoints"
        known = " whose validation BLEU is known" if by == "best" else ""
        raise UserError(
            f"{run_dir} has {len(candidates)} {what}{known}, not {count}: training.keep={count} keeps more of them"
        )
    return sorted(candidates[-count:])


def validation_bleu(run_dir: Path) -> dict[int, float]:
    """BLEU by step from the run's metrics.jsonl, the newest line of a step; empty where nothing was validated yet."""
    path = Path(run_dir) / "metrics.jsonl"
    if not path.exists():
        return {}
    with open(path, "rb") as file:
        readings = [_reading(line, f"{path}:{number}") for number, line in enumerate(file, start=1)]
    return dict(reading for reading in readings if reading)


def refuse_name(name: str) -> None:
    """UserError unless ``name`` can only ever mean an average: no step, no path, and neither best nor latest."""
    if name in ("best", "latest"):
        raise UserError(f"--name cannot be {name}: decoding.checkpoint={name} is one of the run's own checkpoints")
    if not re.fullmatch(AVERAGE_NAME, name):
        raise UserError(f"--name must be a letter, then letters, digits, dots, underscores and hyphens, not {name!r}")


def _as_float64(leaf: jax.Array) -> np.ndarray:
    return np.asarray(leaf, np.float64)


def _reading(line: bytes, place: str) -> tuple[int, float] | None:
    try:
        entry = json.loads(line)
        return (int(entry["step"]), float(entry["bleu"])) if entry["kind"] == "valid" else None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{place} is not a line of metrics: continue the run, or delete that line") from None
