"""Learning curves of runs: validation scores and the cross-entropies of validation and training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from common.errors import UserError
from training.run.layout import METRICS
from training.run.metrics import read_metrics

Series = Float[np.ndarray, " n"]
COLOURS = ["#2b5c8a", "#e07b39", "#2f9e77", "#8e5ea2", "#b23a48", "#777777"]
STYLES = ["-", "--", ":", "-."]  # of the first six runs, the next six …


class Curves(NamedTuple):
    """Values at each evaluation of a run and, of ``trained``, at each line of training metrics; natural logarithms."""

    name: str
    updates: Series
    minutes: Series  # of training and evaluation, without pauses
    bleu: Series
    cross_entropy: Series
    trained_updates: Series
    trained_cross_entropy: Series

    def trained_minutes(self) -> Series:
        """When the lines of training were written, between the evaluations around them; NaN after the last one."""
        return np.interp(self.trained_updates, [0, *self.updates], [0, *self.minutes], right=np.nan)


def read_curves(run_dir: Path) -> Curves:
    """UserError if this is no run, or it was not evaluated yet."""
    if not (run_dir / METRICS).is_file():
        raise UserError(f"{run_dir} is no run directory: it has no {METRICS}")
    lines = read_metrics(run_dir, measured=True)
    evaluated, trained = ([line for line in lines if line["kind"] == kind] for kind in ("valid", "train"))
    if not evaluated:
        raise UserError(f"{run_dir / METRICS} has no evaluation: training.eval_every says after how many updates")

    def series(lines: list[dict[str, Any]], key: str) -> Series:
        return np.array([float(line[key]) for line in lines])  # also of "nan" and "inf", which JSON has as text

    values = [series(evaluated, key) for key in ("step", "minutes", "bleu", "cross_entropy")]
    return Curves(run_dir.name, *values, *(series(trained, key) for key in ("step", "cross_entropy")))


def draw_curves(runs: Sequence[Curves], *, by_updates: bool) -> Figure:
    """BLEU on the left; on the right the cross-entropy of validation, and of training as a thin line."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, run in enumerate(runs):
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)]}
        style["linestyle"] = STYLES[number // len(COLOURS) % len(STYLES)]
        places, trained = (run.updates, run.trained_updates) if by_updates else (run.minutes, run.trained_minutes())
        left.plot(places, run.bleu, **style, marker="o", markersize=3.5, label=run.name)
        right.plot(places, run.cross_entropy, **style, marker="o", markersize=3.5)
        right.plot(trained, run.trained_cross_entropy, **style, linewidth=0.8, alpha=0.7)
    left.set_title("BLEU, validation set", fontsize=11)
    right.set_title("Cross-entropy in nats, validation set and (thin) training", fontsize=11)
    right.set_ylim(*_focus(runs))
    for axes in (left, right):
        axes.set_xlabel("updates" if by_updates else "minutes of training")
        axes.set_xlim(0, None)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, loc="lower right")
    return figure


def _focus(runs: Sequence[Curves]) -> tuple[float, float]:
    """Limits that leave out the first updates, whose cross-entropy would press all else to the bottom."""
    shown = np.concatenate([values for run in runs for values in (run.cross_entropy, run.trained_cross_entropy)])
    shown = shown[np.isfinite(shown)]
    first = [run.cross_entropy[0] for run in runs if np.isfinite(run.cross_entropy[0])]
    return 0.95 * min(shown, default=0.0), 1.05 * max(first or shown, default=1.0)
