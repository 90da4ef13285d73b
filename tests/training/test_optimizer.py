"""Schedules by arithmetic, the optimizer against formulas written out."""

from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest
from scipy.optimize import linprog

from attention.kernels.request import tracing_for
from model.config import ModelConfig
from tests.drawn import drawn_params
from training.config import TrainingConfig
from training.muon import COEFFICIENTS, orthogonalize, orthogonalize_all, scale_by_muon
from training.optimizer import learning_rate, optimizer

CHOICES = {field.name: field.metadata["choices"] for field in fields(TrainingConfig)}
PLAIN = TrainingConfig(steps=9, warmup_steps=0, schedule="constant", clip_norm=0.0)
ROUNDING = 0.05  # three iterations with operands in bfloat16 amplify its roundings of 0.002 about ten times,
ROUNDING_AT_RANK_1 = 0.25  # and up to a hundred times at a singular value of 1


def rates(schedule, updates, **changes):
    config = TrainingConfig(
        **({"steps": 100, "learning_rate": 0.5, "warmup_steps": 10, "schedule": schedule} | changes),
        decay_steps=20 * (schedule == "wsd"),
    )
    return [float(learning_rate(config)(update)) for update in updates]


@pytest.mark.parametrize("schedule", CHOICES["schedule"])
def test_warm_up_is_linear_and_ends_at_the_peak(schedule):
    assert rates(schedule, [0, 4, 9]) == pytest.approx([0.05, 0.25, 0.5], rel=1e-6)


@pytest.mark.parametrize("schedule", CHOICES["schedule"])
def test_the_longest_training_begins_at_the_peak(schedule):
    longest = 2**31 - 1
    decay = longest * (schedule == "wsd")
    config = TrainingConfig(steps=longest, schedule=schedule, warmup_steps=0, learning_rate=0.5, decay_steps=decay)
    assert float(learning_rate(config)(0)) == pytest.approx(0.5, rel=1e-6)


DECAYED = {  # updates, and their rates with the peak 0.5, 10 updates of warm-up and 100 updates in all
    "inverse_sqrt": ([39, 159], [0.25, 0.125]),  # √(10/40), √(10/160) of 0.5
    # The last update is the 100th; steps 10 to 101 are 91 apart, so the rate falls to 0 right after it.
    "linear": ([99, 100], [0.5 / 91, 0]),
    "cosine": ([99, 100], [0.25 * (1 - np.cos(np.pi / 91)), 0]),
    "constant": ([99], [0.5]),
    # Of 20 steps, the first is at 20/21 of the peak, and the last at 1/21.
    "wsd": ([79, 80, 99, 100], [0.5, 0.5 * 20 / 21, 0.5 / 21, 0]),
}


@pytest.mark.parametrize("schedule", CHOICES["schedule"])
def test_decays_by_hand(schedule):
    updates, expected = DECAYED[schedule]
    assert rates(schedule, updates) == pytest.approx(expected, rel=1e-6, abs=1e-7)


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


def first_update(transform, params, gradients):
    return transform.update(gradients, transform.init(params), params)[0]


def assert_near(found, expected, tolerance):
    """The difference is small beside what is expected, in Frobenius norms."""
    assert np.linalg.norm(found - expected) < tolerance * np.linalg.norm(expected)


def orthogonalized(g):
    """Three polynomials of the singular values, relative to the Frobenius norm (Amsel et al. 2025)."""
    u, values, v = np.linalg.svd(g, full_matrices=False)
    values = values / np.linalg.norm(g)
    for a, b, c in COEFFICIENTS:
        values = a * values + b * values**3 + c * values**5
    return u @ np.diag(values) @ v


# The first update of a matrix w by its gradient g, at the rate 0.1. Adam's corrected moments are g and g² then.
FIRST_UPDATES = {
    "adam": lambda w, g: -0.1 * g / (np.abs(g) + 1e-9),
    "adamw": lambda w, g: -0.1 * (g / (np.abs(g) + 1e-9) + 0.5 * w),
    "muon": lambda w, g: -0.1 * (0.2 * np.sqrt(max(g.shape)) * orthogonalized(g) + 0.5 * w),
}


@pytest.mark.parametrize("name", CHOICES["optimizer"])
def test_the_first_update_by_hand(name):
    config = replace(PLAIN, learning_rate=0.1, optimizer=name, weight_decay=0.5 * (name != "adam"))
    w, g = np.array([[1.0, -2.0, 0.5], [0.3, 0.7, 1.1]]), np.array([[3.0, -0.4, 0.1], [0.2, 1.5, -2.0]])
    updates = first_update(optimizer(config), *({"kernel": jnp.asarray(each, jnp.float32)} for each in (w, g)))
    assert_near(updates["kernel"], FIRST_UPDATES[name](w, g), ROUNDING if name == "muon" else 1e-5)


def test_muon_leaves_all_but_dense_matrices_to_adam():
    """Of a whole model, with every kind of parameter: what is no dense matrix moves as with adam."""
    model = ModelConfig(
        d_model=8, num_heads=2, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=16, score="general",
        positions="relative",
    )  # fmt: skip
    params = drawn_params(model, 30)
    adam = optax.adam(PLAIN.learning_rate, b1=PLAIN.beta1, b2=PLAIN.beta2, eps=PLAIN.epsilon)
    muon = optimizer(replace(PLAIN, optimizer="muon"))
    by_adam, by_muon = (first_update(each, params, params) for each in (adam, muon))
    same = jax.tree.map(lambda one, other: bool(jnp.allclose(one, other, rtol=1e-5)), by_adam, by_muon)
    names = {path[-1].key: is_same for path, is_same in jax.tree.leaves_with_path(same)}
    assert names == {"kernel": False, "bias": True, "scale": True, "table": True, "weights": True}


@pytest.mark.parametrize("name", CHOICES["optimizer"])
def test_embeddings_have_a_learning_rate_of_their_own(name):
    """Three times the rate of the table moves it three times as far, with any optimizer, and nothing else."""
    model = ModelConfig(d_model=8, num_heads=2, head_dim=4, encoder_layers=1, decoder_layers=1, positions="relative")
    params = drawn_params(model, 30)  # with tables of relative positions
    config = TrainingConfig(steps=9, optimizer=name, weight_decay=0.5 * (name != "adam"))
    by_rate = [optimizer(replace(config, embedding_rate=rate)) for rate in (1.0, 3.0)]
    plain, tripled = (first_update(each, params, params) for each in by_rate)
    states = [each.init(params) for each in by_rate]
    one, other = (repr(jax.tree.structure(state)) for state in states)
    assert one == other, "a run can continue with another rate"
    factors = jax.tree.map(lambda one, other: other / one, plain, tripled)
    for path, factor in jax.tree.leaves_with_path(factors):
        of_embeddings = jax.tree_util.keystr(path, simple=True, separator=".") == "embedding.table"
        np.testing.assert_allclose(factor, 3.0 if of_embeddings else 1.0, rtol=1e-6)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_weight_decay_spares_vectors(name):
    params = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}
    config, zero = replace(PLAIN, optimizer=name, weight_decay=0.5), jax.tree.map(jnp.zeros_like, params)
    updates = first_update(optimizer(config), params, zero)
    np.testing.assert_allclose(updates["kernel"], -config.learning_rate * 0.5 * np.ones((2, 2)), rtol=1e-6)
    np.testing.assert_array_equal(updates["bias"], np.zeros(2))


def test_matrices_of_a_shape_are_orthogonal_together_as_one_by_one():
    shapes = {"a": (48, 80), "b": (80, 48), "c": (32, 32), "d": (48, 80), "e": (32, 32)}
    matrices = {name: jax.random.normal(jax.random.key(ord(name)), shape) for name, shape in shapes.items()}
    with tracing_for("gpu"):
        together = orthogonalize_all(matrices)
    for name, matrix in matrices.items():
        assert_near(together[name], orthogonalized(np.asarray(matrix, np.float64)), ROUNDING)


@pytest.mark.parametrize("shape", [(48, 80), (80, 48), (32, 32), (1, 6), (64, 16)])
def test_orthogonalize_is_that_of_optax_and_its_singular_values_are_about_one(shape):
    matrix = jax.random.normal(jax.random.key(0), shape)
    found, rounding = orthogonalize(matrix), ROUNDING if min(shape) > 1 else ROUNDING_AT_RANK_1
    assert_near(found, orthogonalized(np.asarray(matrix, np.float64)), rounding)
    optax_muon = optax.contrib.scale_by_muon(COEFFICIENTS, beta=0.0, nesterov=False)
    theirs, _ = optax_muon.update(matrix, optax_muon.init(matrix))
    assert_near(found, theirs, rounding)
    before, after = (np.linalg.svd(each, compute_uv=False) for each in (matrix, found))
    assert after[before > 0.01 * np.linalg.norm(before)].min() > 0.69 and after.max() < 1.3


def test_each_iteration_has_the_polynomial_with_the_least_error_on_what_the_last_one_leaves():
    """|1 − p(x)| on [low, high] by linear programming; p(x / 1.01) is safe from rounding (Amsel et al. 2025)."""
    low, high = 0.01, 1.0
    for coefficients in COEFFICIENTS:
        values = np.geomspace(low, high, 5000)[:, None]
        powers, ones = values ** [1, 3, 5], np.ones_like(values)
        sides = np.block([[powers, -ones], [-powers, -ones]])
        *best, error = linprog([0, 0, 0, 1], sides, np.block([[ones], [-ones]]), bounds=(None, None)).x
        np.testing.assert_allclose(coefficients, best / 1.01 ** np.array([1, 3, 5]), rtol=1e-3)
        low, high = np.dot(coefficients, low ** np.array([1, 3, 5])), 1 + error


def test_the_update_of_a_zero_matrix_is_zero():
    assert not orthogonalize(jnp.zeros((3, 4))).any()


def test_muon_has_the_momentum_of_nesterov():
    """g + 0.95 (g + 0.95 g₁) after the second gradient, made orthogonal (Jordan et al. 2024)."""
    first, second = (jax.random.normal(jax.random.key(i), (48, 80)) for i in range(2))
    transform = scale_by_muon()
    _, state = transform.update({"kernel": first}, transform.init({"kernel": first}))
    found, _ = transform.update({"kernel": second}, state)
    expected = 0.2 * np.sqrt(80) * orthogonalize(second + 0.95 * (second + 0.95 * first))
    assert_near(found["kernel"], expected, 2e-3)
