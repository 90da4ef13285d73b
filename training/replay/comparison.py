"""Compare two runs: first by their records, then by replaying both up to their first difference."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict
from jaxtyping import PyTree

from common.files import read_json_object
from model.transformer import init_params
from training.replay.replay import RecordedRun, Replay, ReplayedUpdate, show_progress, start_replay
from training.run.checkpoint import list_shapes
from training.run.config_history import change_steps
from training.run.corpus import load_tokenizer
from training.run.layout import DATA, ENVIRONMENT
from training.run.retention import good_steps
from training.state import TrainState

DATA_KEYS = ("fingerprint", "tokenizer.sha256", "direction", "training_pairs")


@dataclass(frozen=True)
class LeafDifference:
    """The first leaf with different bits, and the largest absolute difference in it (NaN if it involves one)."""

    leaf: str
    largest: float

    def __str__(self) -> str:
        return f"first in {self.leaf}, there by up to {self.largest:.3g}"


@dataclass(frozen=True)
class Divergence:
    """The first step at which two runs differ, what differs first in it and, for a state, in which leaf."""

    step: int
    what: str
    difference: LeafDifference | None = None


@dataclass(frozen=True)
class Comparison:
    """Two runs, with lines "key: old → new"; fields from ``start`` on are empty if their parameters do not match."""

    runs: tuple[str, str]
    config: list[str]
    changed_at: tuple[list[int], list[int]]
    environment: list[str]
    data: list[str]
    divergence: Divergence | None = None
    differ: bool = True  # in states, updates or metrics
    start: int | None = None  # the step up to which they are equal, and from which both were replayed
    until: int | None = None  # where the replays end, unless they diverge earlier
    line: int | None = None  # the first step with different lines of metrics
    line_differences: list[str] = field(default_factory=list)
    apart: int | None = None  # the first step at which both have a checkpoint and the states differ
    updates: list[tuple[ReplayedUpdate, ReplayedUpdate]] = field(default_factory=list)  # the last two


def compare_runs(one: RecordedRun, other: RecordedRun, config: list[str], limit: int | None) -> Comparison:
    """Compare two runs up to step ``limit`` or the last that both took; ``config`` lists their config differences."""
    folders = one.folder, other.folder
    names, changed_at = (str(one.folder), str(other.folder)), (change_steps(one.folder), change_steps(other.folder))
    environment, data = _list_differences(folders, ENVIRONMENT), _list_differences(folders, DATA, DATA_KEYS)
    comparison = Comparison(names, config, changed_at, environment, data)
    if shapes := _find_other_shape(one, other):
        return replace(comparison, divergence=Divergence(0, f"parameters: {shapes}"))
    for run in (one, other):
        run.check_step(limit or 0)
    until = limit or min(one.last_step, other.last_step)
    line = _find_differing_line(one, other, until)
    start, apart = _find_newest_equal_checkpoint(one, other, until if line is None else line - 1)
    ours, theirs = ({} if line is None else run.metrics[line] for run in (one, other))
    keys = (key for key in ours | theirs if ours.get(key) != theirs.get(key))
    differences = [f"{key} {ours.get(key)}, {theirs.get(key)}" for key in keys]
    until = apart or line or until
    comparison = replace(comparison, until=until, line=line, line_differences=differences, apart=apart)
    return _replay_both(comparison, start_replay(one, start, until), start_replay(other, start, until))


def _replay_both(comparison: Comparison, one: Replay, other: Replay) -> Comparison:
    """Replay both runs up to the last step of the comparison or until they diverge."""
    start, until = one.step, comparison.until or one.step
    divergence = compare_states(start, one.state, other.state)
    updates: list[tuple[ReplayedUpdate, ReplayedUpdate]] = []
    for _ in show_progress(range(start, start if divergence else until), one, other):
        ours, theirs = one.take_update(), other.take_update()
        divergence = compare_updates(ours, theirs) or compare_states(ours.step, one.state, other.state)
        updates = [*updates[-1:], (ours, theirs)]
        if divergence:
            break
    differ = bool(divergence) or comparison.line is not None or comparison.apart is not None
    return replace(comparison, start=start, divergence=divergence, differ=differ, updates=updates)


def compare_states(step: int, one: TrainState, other: TrainState) -> Divergence | None:
    """What differs first in two states after ``step``. Ignores sums for the metrics, which affect no update."""
    parts = "parameters" if step else "initial parameters", "optimizer state", "averaged parameters"
    trees = ((state.params, state.opt_state, state.averaged) for state in (one, other))
    for what, part, twin in zip(parts, *trees, strict=True):
        names, twins = ([path for path, _ in jax.tree.leaves_with_path(tree)] for tree in (part, twin))
        if names == twins and (found := find_leaf_difference(part, twin)):
            return Divergence(step, what, found)
    return None


def compare_updates(one: ReplayedUpdate, other: ReplayedUpdate) -> Divergence | None:
    """What differs first in two updates of the same step, before any parameter changes."""
    if one.batch != other.batch:
        return Divergence(one.step, "batch")
    numbers = ("loss", one.loss, other.loss), ("gradient norm", one.gradient_norm, other.gradient_norm)
    for what, ours, theirs in numbers:
        if np.float32(ours).tobytes() != np.float32(theirs).tobytes():  # unlike ==, treats equal NaNs as equal
            return Divergence(one.step, what)
    return None


def find_leaf_difference(one: PyTree, other: PyTree) -> LeafDifference | None:
    """The first leaf with different bits in two trees of equal structure; None if all are equal."""
    same = jax.tree.leaves(jax.device_get(_equal_bits(one, other)))
    named = jax.tree.leaves_with_path(one)
    for (path, leaf), twin, is_same in zip(named, jax.tree.leaves(other), same, strict=True):
        if not is_same:
            with np.errstate(invalid="ignore"):
                largest = float(np.abs(np.asarray(leaf, np.float64) - np.asarray(twin, np.float64)).max())
            return LeafDifference(jax.tree_util.keystr(path, simple=True, separator="."), largest)
    return None


@jax.jit
def _equal_bits(one: PyTree, other: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf, twin: jnp.array_equal(leaf.view(jnp.uint32), twin.view(jnp.uint32)), one, other)


def _find_differing_line(one: RecordedRun, other: RecordedRun, until: int) -> int | None:
    """The first step with different lines of metrics that sum up the same updates."""
    for step in sorted(one.metrics.keys() & other.metrics.keys()):
        previous = {max((before for before in run.metrics if before < step), default=0) for run in (one, other)}
        if step <= until and len(previous) == 1 and one.metrics[step] != other.metrics[step]:
            return step
    return None


def _find_newest_equal_checkpoint(one: RecordedRun, other: RecordedRun, newest: int) -> tuple[int, int | None]:
    """The newest step up to ``newest`` at which both runs have intact checkpoints with the same state, else 0.

    Also returns the oldest later step at which both have a checkpoint and the states differ.
    """
    apart = None
    for step in sorted(set(good_steps(one.folder)) & set(good_steps(other.folder)), reverse=True):
        if 0 < step <= newest:
            if compare_states(step, one.restore_state(step), other.restore_state(step)) is None:
                return step, apart
            apart = step
    return 0, apart


def _list_differences(folders: tuple[Path, Path], name: str, keys: Iterable[str] = ()) -> list[str]:
    old, new = (flatten_dict(read_json_object(folder / name), sep=".") for folder in folders)
    return [f"{key}: {old.get(key)} → {new.get(key)}" for key in keys or old | new if old.get(key) != new.get(key)]


def _find_other_shape(one: RecordedRun, other: RecordedRun) -> str | None:
    """The first parameter that only one of two models has, or that has different shapes."""
    models = ((run.initial_model, load_tokenizer(run.folder).vocab_size) for run in (one, other))
    trees = (jax.eval_shape(partial(init_params, *model), jax.random.key(0)) for model in models)
    shapes, others = map(list_shapes, trees)
    for name in shapes | others:
        if shapes.get(name) != others.get(name):
            ours, theirs = shapes.get(name, "missing"), others.get(name, "missing")
            return f"{name} is {ours} in {one.folder}, {theirs} in {other.folder}"
    return None


def format_comparison(comparison: Comparison) -> str:
    blocks = {"config": comparison.config, "environment": comparison.environment, "data": comparison.data}
    lines = [" → ".join(comparison.runs), *(line for name in blocks for line in _format_block(name, blocks[name]))]
    lines += [
        f"changed      {run} continued with another config or corpus after step {', '.join(map(str, steps))}"
        for run, steps in zip(comparison.runs, comparison.changed_at, strict=True)
        if steps
    ]
    if comparison.start is not None:
        differences = [f"differ first at step {comparison.line}: {line}" for line in comparison.line_differences]
        lines += [*_format_block("metrics", differences), *_format_updates(comparison)]
    return "\n".join([*lines, _describe_verdict(comparison)])


def _format_block(name: str, lines: list[str]) -> list[str]:
    return [f"{'' if number else name:<12} {line}" for number, line in enumerate(lines or ["no difference"])]


def _format_updates(comparison: Comparison) -> list[str]:
    """The last step at which both runs are equal and the first at which they are not."""
    start, updates = comparison.start, comparison.updates
    origin = f"the checkpoints at step {start}, which are equal" if start else "the start"
    lines = [f"replayed     from {origin}"]
    if updates:
        lines.append(f"\n{'step':>8}  {'batch':<12} {'loss':<20} {'gradient norm':<20} run")
    for pair in updates if comparison.divergence else updates[-1:]:
        lines += [
            f"{update.step:>8}  {update.batch[:10]:<12} {update.loss!r:<20} {update.gradient_norm!r:<20} "
            f"{run}{'  (skipped)' if update.skipped else ''}"
            for run, update in zip(comparison.runs, pair, strict=True)
        ]
    return [*lines, ""]


def _describe_verdict(comparison: Comparison) -> str:
    if divergence := comparison.divergence:
        leaf = f", {divergence.difference}" if divergence.difference else ""
        return f"first difference: step {divergence.step}, {divergence.what}{leaf}"
    if not comparison.differ:
        return f"no difference up to step {comparison.until}"
    until, cause = comparison.until, "the cause is the machine, its versions or chance, not the config or data"
    finding = f"the records differ at step {until}, but both replays are equal up to there: {cause}"
    return f"{finding} (RUN --step {until} compares each run's records with its replay)"
