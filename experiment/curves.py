"""Learning curves of runs: validation scores and the cross-entropies of validation and training."""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from common.errors import UserError
from common.pictures import Figure
from configs.changes import classify_changes
from configs.load import load_config
from training.run.config_history import change_steps, find_record
from training.run.corpus import load_identity
from training.run.layout import CONFIG, DATA, METRICS
from training.run.metrics import read_metrics

Series = Float[np.ndarray, " n"]
Records = tuple[Path, Path]  # the config.yaml and data.json of a step
COLOURS = ["#2b5c8a", "#e07b39", "#2f9e77", "#8e5ea2", "#b23a48", "#777777"]
STYLES = ["-", "--", ":", "-."]  # of the first six runs, the next six …


class Curves(NamedTuple):
    """Values at each evaluation of a run and, of ``trained``, at each line of training metrics; natural logarithms."""

    name: str  # its path: a figure shows as much of its end as tells it from others
    breaks: tuple[int, ...]  # the places of the first evaluations on another validation set, or by another search
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
        return np.array([float(line.get(key, "nan")) for line in lines])  # JSON has "nan" and "inf" as text, too

    return Curves(
        os.path.abspath(run_dir),
        find_breaks(run_dir, [line["step"] for line in evaluated]),
        *(series(evaluated, key) for key in ("step", "minutes", "bleu", "cross_entropy")),
        *(series(trained, key) for key in ("step", "cross_entropy")),
    )


def find_breaks(run_dir: Path, steps: list[int]) -> tuple[int, ...]:
    """The places, from 1, of the evaluations whose scores do not compare with those of the evaluation before."""
    if not change_steps(run_dir):
        return ()
    found = [(find_record(run_dir, CONFIG, step), find_record(run_dir, DATA, step)) for step in steps]
    pairs = enumerate(pairwise(found), start=1)
    return tuple(place for place, (one, other) in pairs if one != other and is_validated_otherwise(run_dir, one, other))


def is_validated_otherwise(run_dir: Path, one: Records, other: Records) -> bool:
    before, after = (load_config(config, [f"run_dir={run_dir}"]) for config, _ in (one, other))
    known, new = (load_identity(data) for _, data in (one, other))
    has_other_set = known is not None and new is not None and known.files["valid"] != new.files["valid"]
    return has_other_set or "validation" in classify_changes(before, after).values()


def draw_curves(runs: Sequence[Curves], *, by_updates: bool) -> Figure:
    """BLEU on the left; on the right the cross-entropy of validation, and of training as a thin line."""
    names = shorten([run.name for run in runs])
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for number, run in enumerate(runs):
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)]}
        style["linestyle"] = STYLES[number // len(COLOURS) % len(STYLES)]
        places, trained = (run.updates, run.trained_updates) if by_updates else (run.minutes, run.trained_minutes())
        for axes, values, label in ((left, run.bleu, names[number]), (right, run.cross_entropy, "")):
            line = (np.insert(each, run.breaks, np.nan) for each in (places, values))  # NaN interrupts a line
            axes.plot(*line, **style, marker="o", markersize=3.5, label=label)
        right.plot(trained, run.trained_cross_entropy, **style, linewidth=0.8, alpha=0.7)
    left.set_title("BLEU, validation set", fontsize=11)
    right.set_title("Cross-entropy in nats, validation set and (thin) training", fontsize=11)
    right.set_ylim(*_focus(runs))
    for axes in (left, right):
        axes.set_xlabel("updates" if by_updates else "minutes of training")
        axes.set_xlim(0, None)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for text in left.legend(frameon=False, loc="lower right").get_texts():
        text.set_parse_math(False)  # $ is a letter
    return figure


def shorten(paths: Sequence[str]) -> list[str]:
    """The fewest last parts that tell the paths apart and do not begin with _, for which matplotlib has no legend."""
    for count in range(1, max(map(len, paths))):
        names = [os.path.join(*Path(path).parts[-count:]) for path in paths]
        if len(set(names)) == len(set(paths)) and not any(name.startswith("_") for name in names):
            return names
    return list(paths)


def _focus(runs: Sequence[Curves]) -> tuple[float, float]:
    """Limits that show the descent but for its first tenth, which would press all else to the bottom."""
    values = []
    for run in runs:
        last = max(run.updates[-1], max(run.trained_updates, default=0))
        values += [run.cross_entropy, run.trained_cross_entropy[run.trained_updates >= last / 10]]
    shown = np.concatenate(values)
    shown = shown[np.isfinite(shown)]
    return 0.95 * min(shown, default=0.0), 1.05 * max(shown, default=1.0)
