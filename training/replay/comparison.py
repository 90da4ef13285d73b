"""Compare two runs: by their records, then by replaying both up to their first difference."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

from common.files import read_json_object
from data.tokenizer import load_tokenizer
from model.transformer import init_params
from training.replay.divergence import (
    Divergence,
    compare_states,
    compare_with_checkpoint,
    find_bounds,
    replay_in_lockstep,
)
from training.replay.replay import (
    RecordedRun,
    Replay,
    ReplayedUpdate,
    list_metric_differences,
    show_progress,
    start_replay,
)
from training.run.catalog import good_steps
from training.run.checkpoint import list_shapes
from training.run.config_history import change_steps

DATA_KEYS = ("fingerprint", "tokenizer.sha256", "direction", "training_pairs")


@dataclass(frozen=True)
class Comparison:
    """Two runs, with lines "key: old → new" on config, environment and data. ``differ``: states, updates or metrics do.

    The fields from ``start`` on are empty if the models have different parameters.
    """

    runs: tuple[str, str]
    config: list[str]
    changed_at: tuple[list[int], list[int]]
    environment: list[str]
    data: list[str]
    divergence: Divergence | None
    differ: bool
    start: int | None = None
    until: int | None = None
    line: int | None = None
    line_differences: list[str] = field(default_factory=list)
    apart: int | None = None
    updates: list[tuple[ReplayedUpdate, ReplayedUpdate]] = field(default_factory=list)  # the last two
    not_reproduced: list[str] = field(default_factory=list)


def compare_runs(one: RecordedRun, other: RecordedRun, config: list[str], limit: int | None) -> Comparison:
    """Compare two runs up to step ``limit``, or the last that both took; ``config`` lists their differences."""
    folders = one.folder, other.folder
    facts: dict[str, Any] = {
        "runs": (str(one.folder), str(other.folder)),
        "config": config,
        "changed_at": (change_steps(one.folder), change_steps(other.folder)),
        "environment": _list_differences(folders, "environment.json"),
        "data": _list_differences(folders, "data.json", DATA_KEYS),
    }
    if shapes := _find_other_shape(one, other):
        return Comparison(**facts, divergence=Divergence(0, f"parameters: {shapes}"), differ=True)
    return _replay_both(one, other, limit, facts)


def _replay_both(one: RecordedRun, other: RecordedRun, limit: int | None, facts: dict[str, Any]) -> Comparison:
    """Take the updates of both runs, from the newest state that they are known to share until they diverge."""
    for run in (one, other):
        run.check_step(limit or 0)
    bounds = find_bounds(one, other, limit or min(one.last_step, other.last_step))
    replays = start_replay(one, bounds.start, bounds.until), start_replay(other, bounds.start, bounds.until)
    divergence = compare_states(bounds.start, replays[0].state, replays[1].state)
    updates: list[tuple[ReplayedUpdate, ReplayedUpdate]] = []
    not_reproduced: dict[Path, list[str]] = {}  # of a run's first such step only: those after it follow from it
    steps = range(bounds.start, bounds.start if divergence else bounds.until)
    lockstep = replay_in_lockstep(*replays, bounds.until)
    for _, (ours, theirs, found) in zip(show_progress(steps, *replays), lockstep, strict=False):
        updates, divergence = [*updates, (ours, theirs)][-2:], found
        for replay, update in zip(replays, (ours, theirs), strict=True):
            if problems := _list_not_reproduced(replay, update):
                not_reproduced.setdefault(replay.run.folder, problems)
    return Comparison(
        **facts,
        **vars(bounds),
        divergence=divergence,
        differ=bool(divergence) or bounds.line is not None or bounds.apart is not None,
        updates=updates,
        not_reproduced=[line for problems in not_reproduced.values() for line in problems],
    )


def _list_not_reproduced(replay: Replay, update: ReplayedUpdate) -> list[str]:
    """Lines on what the run recorded of this step and its replay does not reproduce."""
    folder, lines = replay.run.folder, []
    if differences := list_metric_differences(replay.run, update):
        lines.append(
            f"the replay of {folder} does not give its recorded line at step {update.step}: {'; '.join(differences)}"
        )
    found = compare_with_checkpoint(replay) if update.step in good_steps(folder) else None
    if found:
        lines.append(
            f"the replay of {folder} does not give its checkpoint at step {update.step}: it differs first in "
            f"{found.leaf}, by up to {found.largest:.3g}"
        )
    return lines


def _read_flat(path: Path) -> dict[str, Any]:
    """A JSON object whose inner keys are joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in read_json_object(path).items():
        flat |= {f"{key}.{inner}": leaf for inner, leaf in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _list_differences(folders: tuple[Path, Path], name: str, keys: Iterable[str] = ()) -> list[str]:
    old, new = (_read_flat(folder / name) for folder in folders)
    keys = keys or old | new
    return [f"{key}: {old.get(key)} → {new.get(key)}" for key in keys if old.get(key) != new.get(key)]


def _find_other_shape(one: RecordedRun, other: RecordedRun) -> str | None:
    """The first parameter that only one of two models has, or that has another shape."""
    shapes, others = _parameter_shapes(one), _parameter_shapes(other)
    for name in shapes | others:
        if shapes.get(name) != others.get(name):
            ours, theirs = shapes.get(name, "missing"), others.get(name, "missing")
            return f"{name} is {ours} in {one.folder}, {theirs} in {other.folder}"
    return None


def _parameter_shapes(run: RecordedRun) -> dict[str, tuple[int, ...]]:
    vocab_size = load_tokenizer(run.folder).vocab_size
    return list_shapes(jax.eval_shape(lambda: init_params(run.initial_model, vocab_size, jax.random.key(0))))
