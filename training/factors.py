"""Schedules of regularisation: factors for dropout, word dropout, weight decay and the learning rate.

A schedule is a list of points [STEP, FACTOR]. The factor is interpolated between points and constant before the first
and after the last. It depends only on the step, so a resumed run has the same factor as an uninterrupted one.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from model.layers import Draws
from training.config import Points, TrainingConfig


def factor_at(points: Points, updates: jax.typing.ArrayLike) -> Float[Array, ""]:
    """The factor of the next update after this many updates; the first update is step 0."""
    steps, factors = jnp.asarray(points, jnp.float32).T
    return jnp.interp(jnp.asarray(updates, jnp.float32), steps, factors)


def draws_of(config: TrainingConfig, key: Key[Array, ""], step: Int[Array, ""]) -> Draws:
    """What dropout draws with after ``step`` updates; a factor is None if its schedule is not set."""
    schedules = config.dropout_factor, config.word_dropout_factor
    return Draws(key, *(factor_at(points, step) if points else None for points in schedules))


def factors_by_name(config: TrainingConfig, step: int, applied: int) -> dict[str, float]:
    """The factors after ``step`` updates, for metrics. The optimizer counts only ``applied`` updates."""
    counts = {"dropout_factor": step, "word_dropout_factor": step, "weight_decay_factor": applied}
    return {name: float(factor_at(points, at)) for name, at in counts.items() if (points := vars(config)[name])}
