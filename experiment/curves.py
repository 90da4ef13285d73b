"""Learning curves of runs: validation scores, and the loss, learning rate, gradient norm and speed of training."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from common.files import read_json_object
from configs.changes import classify_changes
from configs.load import load_config
from training.run.config_history import change_steps, find_record
from training.run.corpus import load_identity
from training.run.layout import CONFIG, DATA
from training.run.metrics import read_metrics

Series = Float[np.ndarray, " _"]
Records = tuple[Path, Path]  # the config.yaml and data.json of a step
KEYS = {
    "valid": ("step", "minutes", "bleu", "cross_entropy"),
    "train": ("step", "cross_entropy", "learning_rate", "gradient_norm", "tokens_per_second"),
}


def read_curves(run_dir: Path) -> dict[str, Any]:
    """The data for report.js: ``valid`` and ``train`` with series of equal length, and null for missing numbers.

    Both have the updates (``step``), the minutes of training and evaluation without pauses, and the tokens of both
    sides, estimated from the mean batch. Cross-entropy is in nats. ``breaks`` are the places of the first evaluations
    with another validation set or another search.
    """
    lines = read_metrics(run_dir, measured=True)
    valid, train = (series([line for line in lines if line["kind"] == kind], keys) for kind, keys in KEYS.items())
    tokens = tokens_until(run_dir, np.concatenate([valid["step"], train["step"]]))
    valid["tokens"], train["tokens"] = np.split(tokens, [len(valid["step"])])
    train["minutes"] = minutes_of_training(train, valid)
    breaks = find_breaks(run_dir, [int(step) for step in valid["step"]])
    return {"valid": without_nan(valid), "train": without_nan(train), "breaks": breaks}


def series(lines: list[dict[str, Any]], keys: tuple[str, ...]) -> dict[str, Series]:
    """Values by key; numbers may also be the strings "nan" and "inf"."""
    return {key: np.array([float(line.get(key, "nan")) for line in lines], np.float64) for key in keys}


def tokens_until(run_dir: Path, steps: Series) -> Series:
    """Tokens of both sides in all batches up to each step; batches of another config or corpus have other sizes."""
    changed = change_steps(run_dir)
    ends = [*changed, max([*steps, *changed], default=0) + 1]
    total = np.cumsum(np.diff(ends, prepend=0) * [tokens_per_update(run_dir, int(end)) for end in ends])
    return np.interp(steps, [0, *ends], [0, *total])


def tokens_per_update(run_dir: Path, step: int) -> float:
    """Tokens of both sides in a batch, from the fill of rows recorded in data.json; NaN if it is not recorded."""
    data = read_json_object(find_record(run_dir, DATA, step)) or read_json_object(run_dir / DATA)
    batch_rows = load_config(find_record(run_dir, CONFIG, step), [f"run_dir={run_dir}"]).data.batch_rows
    try:
        return batch_rows * sum(float(size) * float(data["fill"][side]) for side, size in data["row_lengths"].items())
    except (AttributeError, KeyError, TypeError, ValueError):
        return float("nan")


def minutes_of_training(train: dict[str, Series], valid: dict[str, Series]) -> Series:
    """When training lines were written, by their speed; evaluation lines show what other time had passed by then."""
    own = np.cumsum(np.diff(train["tokens"], prepend=0) / train["tokens_per_second"] / 60)
    until = np.interp(valid["step"], [0, *train["step"]], [0, *own])
    return own + np.interp(train["step"], [0, *valid["step"]], [0, *(valid["minutes"] - until)])


def without_nan(values: dict[str, Series]) -> dict[str, list[float | None]]:
    return {key: [float(each) if np.isfinite(each) else None for each in found] for key, found in values.items()}


def find_breaks(run_dir: Path, steps: list[int]) -> tuple[int, ...]:
    """The places, from 1, of evaluations with scores that are not comparable with the previous evaluation's."""
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
