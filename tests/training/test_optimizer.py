"""Schedules by arithmetic, the optimizer against formulas written out."""

from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from training.config import TrainingConfig
from training.optimizer import learning_rate, optimizer

CHOICES = {field.name: field.metadata["choices"] for field in fields(TrainingConfig)}


def rates(schedule, updates, **changes):
    config = TrainingConfig(
        **({"steps": 100, "learning_rate": 0.5, "warmup_steps": 10, "schedule": schedule} | changes)
    )
    return [float(learning_rate(config)(update)) for update in updates]


@pytest.mark.parametrize("schedule", CHOICES["schedule"])
def test_warm_up_is_linear_and_ends_at_the_peak(schedule):
    assert rates(schedule, [0, 4, 9]) == pytest.approx([0.05, 0.25, 0.5], rel=1e-6)


DECAYED = {  # updates, and their rates with the peak 0.5, 10 updates of warm-up and 100 updates in all
    "inverse_sqrt": ([39, 159], [0.25, 0.125]),  # √(10/40), √(10/160) of 0.5
    # The last update is the 100th; steps 10 to 101 are 91 apart, so the rate falls to 0 right after it.
    "linear": ([99, 100], [0.5 / 91, 0]),
    "cosine": ([99, 100], [0.25 * (1 - np.cos(np.pi / 91)), 0]),
    "constant": ([99], [0.5]),
}


@pytest.mark.parametrize("schedule", CHOICES["schedule"])
def test_decays_by_hand(schedule):
    updates, expected = DECAYED[schedule]
    assert rates(schedule, updates) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_no_warm_up_starts_at_the_peak():
    assert rates("inverse_sqrt", [0], warmup_steps=0) == [0.5]


def test_adam_by_its_paper_with_clipping():
    config = TrainingConfig(steps=9, warmup_steps=0, schedule="constant", learning_rate=0.1, clip_norm=1.0)
    transform, params = optimizer(config), {"w": jnp.array([1.0, 2.0])}
    state, first, second = transform.init(params), np.zeros(2), np.zeros(2)
    expected = np.array([1.0, 2.0])
    for step, gradient in enumerate(([3.0, 4.0], [0.3, -0.4]), start=1):
        updates, state = transform.update({"w": jnp.array(gradient)}, state, params)
        params = optax.apply_updates(params, updates)
        clipped = np.array(gradient) / max(1.0, np.linalg.norm(gradient))
        first, second = 0.9 * first + 0.1 * clipped, 0.98 * second + 0.02 * clipped**2
        expected -= 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.98**step)) + 1e-9)
        np.testing.assert_allclose(params["w"], expected, rtol=1e-5)


# The first update of a matrix w by its gradient g, at the rate 0.1. Adam's corrected moments are g and g² then.
FIRST_UPDATES = {
    "adam": lambda w, g: -0.1 * g / (np.abs(g) + 1e-9),
    "adamw": lambda w, g: -0.1 * (g / (np.abs(g) + 1e-9) + 0.5 * w),
}


@pytest.mark.parametrize("name", CHOICES["optimizer"])
def test_the_first_update_by_hand(name):
    config = TrainingConfig(
        steps=9,
        warmup_steps=0,
        schedule="constant",
        learning_rate=0.1,
        clip_norm=0.0,
        optimizer=name,
        weight_decay=0.5 * (name == "adamw"),
    )
    transform, w, g = optimizer(config), np.array([[1.0, -2.0]]), np.array([[3.0, -0.4]])
    updates, _ = transform.update(jnp.asarray(g), transform.init(jnp.asarray(w)), jnp.asarray(w))
    np.testing.assert_allclose(updates, FIRST_UPDATES[name](w, g), rtol=1e-5)


def test_weight_decay_spares_vectors():
    config = TrainingConfig(steps=9, warmup_steps=0, schedule="constant", optimizer="adamw", weight_decay=0.5)
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    zero = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer(config).update(zero, optimizer(config).init(params), params)
    np.testing.assert_allclose(updates["kernel"], -config.learning_rate * 0.5 * np.ones((2, 2)), rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], np.zeros(2))
