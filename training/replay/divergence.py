"""Where two runs part: by what they recorded, and by taking the updates of both again, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, UInt32

from training.replay.replay import Replay, Run, Taken, restored
from training.run.checkpoint import good_steps
from training.state import TrainState


@dataclass(frozen=True)
class Differing:
    """The first leaf whose bits differ, and the largest difference in it (NaN where that is of no number)."""

    leaf: str
    largest: float


@dataclass(frozen=True)
class Parting:
    """Where two runs part: the step, what differs first there, and of states the leaf."""

    step: int
    what: str
    differing: Differing | None = None


@dataclass(frozen=True)
class Bounds:
    """Between which steps two runs part, by what they have recorded: not before ``start``, sought up to ``until``."""

    start: int
    until: int
    line: int | None  # the first step whose lines of metrics differ
    told_by_line: list[str]  # how
    apart: int | None  # the first step at which both have a checkpoint, and these differ


def unlike_checkpoint(replay: Replay) -> Differing | None:
    """Where the state differs from the good checkpoint of its step."""
    return first_differing(replay.state, restored(replay.run, replay.step))


def first_differing(one: PyTree, other: PyTree) -> Differing | None:
    """The first leaf of two trees of equal structure whose bits are not the same; None if all are."""
    same = jax.tree.leaves(jax.device_get(_same_bits(one, other)))
    named = jax.tree.leaves_with_path(one)
    for (path, leaf), twin, is_same in zip(named, jax.tree.leaves(other), same, strict=True):
        if not is_same:
            with np.errstate(invalid="ignore"):
                largest = float(np.abs(np.asarray(leaf, np.float64) - np.asarray(twin, np.float64)).max())
            return Differing(jax.tree_util.keystr(path, simple=True, separator="."), largest)
    return None


def parting_of_states(step: int, one: TrainState, other: TrainState) -> Parting | None:
    """What of two states after ``step`` differs first. Sums for the metrics do not count: they move nothing."""
    parts: list[tuple[str, Any, Any]] = [
        ("parameters" if step else "initial parameters", one.params, other.params),
        ("optimizer state", one.opt_state, other.opt_state),
        ("averaged parameters", one.averaged, other.averaged),
    ]
    for what, part, twin in parts:
        names, twins = ([path for path, _ in jax.tree.leaves_with_path(tree)] for tree in (part, twin))
        if names == twins and (found := first_differing(part, twin)):
            return Parting(step, what, found)
    return None


def in_lockstep(one: Replay, other: Replay, until: int) -> Iterator[tuple[Taken, Taken, Parting | None]]:
    """Updates of both up to step ``until``, and whether they part in one; the first that does is the last given."""
    while one.step < until:
        ours, theirs = one.take(), other.take()
        parting = parting_of_updates(ours, theirs) or parting_of_states(ours.step, one.state, other.state)
        yield ours, theirs, parting
        if parting:
            return


def parting_of_updates(one: Taken, other: Taken) -> Parting | None:
    """What of the same step differs first before any parameter is moved."""
    if one.batch != other.batch:
        return Parting(one.step, "batch")
    if _bits(one.loss) != _bits(other.loss):
        return Parting(one.step, "loss")
    return Parting(one.step, "gradient norm") if _bits(one.gradient_norm) != _bits(other.gradient_norm) else None


def find_bounds(one: Run, other: Run, until: int) -> Bounds:
    """Where to seek the update in which two runs part, if they do up to ``until``."""
    line = first_differing_line(one, other, until)
    start, apart = newest_equal(one, other, until if line is None else line - 1)
    told = [] if line is None else differing_values(one.recorded[line], other.recorded[line])
    return Bounds(start, apart or line or until, line, told, apart)


def first_differing_line(one: Run, other: Run, until: int) -> int | None:
    """The first step whose lines of metrics, where they are of the same updates in both runs, differ."""
    for step in sorted(one.recorded.keys() & other.recorded.keys()):
        befores = {max((before for before in run.recorded if before < step), default=0) for run in (one, other)}
        if step <= until and len(befores) == 1 and one.recorded[step] != other.recorded[step]:
            return step
    return None


def differing_values(line: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What two lines of metrics say differently, "key value, value"."""
    return [f"{key} {line.get(key)}, {other.get(key)}" for key in line | other if line.get(key) != other.get(key)]


def newest_equal(one: Run, other: Run, newest: int) -> tuple[int, int | None]:
    """The newest step up to ``newest`` at which both runs have good checkpoints of the same state, else 0.

    Beside it, the oldest step after that at which both have one and the states differ.
    """
    apart = None
    for step in sorted(set(good_steps(one.folder)) & set(good_steps(other.folder)), reverse=True):
        if 0 < step <= newest:
            if parting_of_states(step, restored(one, step), restored(other, step)) is None:
                return step, apart
            apart = step
    return 0, apart


@jax.jit
def _same_bits(one: PyTree, other: PyTree) -> PyTree:
    def bits(leaf: Array) -> UInt32[Array, "..."]:
        return jax.lax.bitcast_convert_type(leaf, jnp.uint32)

    return jax.tree.map(lambda leaf, twin: jnp.array_equal(bits(leaf), bits(twin)), one, other)


def _bits(number: float) -> bytes:
    return np.float32(number).tobytes()  # which holds for NaN too, unlike ==
