"""Where two runs diverge, by their records and by taking the updates of both again in lockstep."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, UInt32

from training.replay.replay import RecordedRun, Replay, ReplayedUpdate
from training.run.catalog import good_steps
from training.state import TrainState


@dataclass(frozen=True)
class LeafDifference:
    """The first leaf whose bits differ, and the largest absolute difference in it (NaN if it involves one)."""

    leaf: str
    largest: float

    def __str__(self) -> str:
        return f"first in {self.leaf}, there by up to {self.largest:.3g}"


@dataclass(frozen=True)
class Divergence:
    """The first step at which two runs differ, what differs first in it, and in a state, which leaf."""

    step: int
    what: str
    difference: LeafDifference | None = None


@dataclass(frozen=True)
class Bounds:
    """Two runs are equal up to step ``start``; a divergence is to be looked for up to step ``until``."""

    start: int
    until: int
    line: int | None  # the first step whose lines of metrics differ
    line_differences: list[str]
    apart: int | None  # the first step at which both have a checkpoint, and the states differ


def compare_with_checkpoint(replay: Replay) -> LeafDifference | None:
    """Where the replayed state differs from the intact checkpoint of its step."""
    return find_leaf_difference(replay.state, replay.run.restore_state(replay.step))


def find_leaf_difference(one: PyTree, other: PyTree) -> LeafDifference | None:
    """The first leaf of two trees of equal structure whose bits differ; None if all are equal."""
    same = jax.tree.leaves(jax.device_get(_equal_bits(one, other)))
    named = jax.tree.leaves_with_path(one)
    for (path, leaf), twin, is_same in zip(named, jax.tree.leaves(other), same, strict=True):
        if not is_same:
            with np.errstate(invalid="ignore"):
                largest = float(np.abs(np.asarray(leaf, np.float64) - np.asarray(twin, np.float64)).max())
            return LeafDifference(jax.tree_util.keystr(path, simple=True, separator="."), largest)
    return None


def compare_states(step: int, one: TrainState, other: TrainState) -> Divergence | None:
    """What differs first in two states after ``step``. Sums for the metrics are ignored: they affect no update."""
    parts: list[tuple[str, Any, Any]] = [
        ("parameters" if step else "initial parameters", one.params, other.params),
        ("optimizer state", one.opt_state, other.opt_state),
        ("averaged parameters", one.averaged, other.averaged),
    ]
    for what, part, twin in parts:
        names, twins = ([path for path, _ in jax.tree.leaves_with_path(tree)] for tree in (part, twin))
        if names == twins and (found := find_leaf_difference(part, twin)):
            return Divergence(step, what, found)
    return None


def compare_updates(one: ReplayedUpdate, other: ReplayedUpdate) -> Divergence | None:
    """What differs first in two updates of the same step, before any parameter moves."""
    if one.batch != other.batch:
        return Divergence(one.step, "batch")
    if _bits(one.loss) != _bits(other.loss):
        return Divergence(one.step, "loss")
    return Divergence(one.step, "gradient norm") if _bits(one.gradient_norm) != _bits(other.gradient_norm) else None


def replay_in_lockstep(
    one: Replay, other: Replay, until: int
) -> Iterator[tuple[ReplayedUpdate, ReplayedUpdate, Divergence | None]]:
    """Take the updates of both up to step ``until``; the first divergence ends the iteration."""
    while one.step < until:
        ours, theirs = one.take_update(), other.take_update()
        divergence = compare_updates(ours, theirs) or compare_states(ours.step, one.state, other.state)
        yield ours, theirs, divergence
        if divergence:
            return


def find_bounds(one: RecordedRun, other: RecordedRun, until: int) -> Bounds:
    """Where to look for the first update in which two runs differ, if they do up to ``until``."""
    line = _find_differing_line(one, other, until)
    start, apart = _find_newest_equal_checkpoint(one, other, until if line is None else line - 1)
    ours, theirs = ({} if line is None else run.metrics[line] for run in (one, other))
    keys = (key for key in ours | theirs if ours.get(key) != theirs.get(key))
    differences = [f"{key} {ours.get(key)}, {theirs.get(key)}" for key in keys]
    return Bounds(start, apart or line or until, line, differences, apart)


def _find_differing_line(one: RecordedRun, other: RecordedRun, until: int) -> int | None:
    """The first step whose lines of metrics differ, although both sum up the same updates."""
    for step in sorted(one.metrics.keys() & other.metrics.keys()):
        previous = {max((before for before in run.metrics if before < step), default=0) for run in (one, other)}
        if step <= until and len(previous) == 1 and one.metrics[step] != other.metrics[step]:
            return step
    return None


def _find_newest_equal_checkpoint(one: RecordedRun, other: RecordedRun, newest: int) -> tuple[int, int | None]:
    """The newest step up to ``newest`` at which both runs have intact checkpoints of the same state, else 0.

    Second, the oldest step after it at which both have one and the states differ.
    """
    apart = None
    for step in sorted(set(good_steps(one.folder)) & set(good_steps(other.folder)), reverse=True):
        if 0 < step <= newest:
            if compare_states(step, one.restore_state(step), other.restore_state(step)) is None:
                return step, apart
            apart = step
    return 0, apart


@jax.jit
def _equal_bits(one: PyTree, other: PyTree) -> PyTree:
    def bits(leaf: Array) -> UInt32[Array, "..."]:
        return jax.lax.bitcast_convert_type(leaf, jnp.uint32)

    return jax.tree.map(lambda leaf, twin: jnp.array_equal(bits(leaf), bits(twin)), one, other)


def _bits(number: float) -> bytes:
    return np.float32(number).tobytes()  # unlike ==, equal for equal NaNs
