"""Consistency training's loss: divergences by hand, objectives in float64 NumPy, gradients of both views by formula."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model.consistency import consistency_loss
from training.config import TrainingConfig

METHODS = [word for word in TrainingConfig.__dataclass_fields__["consistency"].metadata["choices"] if word != "none"]
LABELS = jnp.array([[0, 3, 1], [0, 3, 1], [4, 4, 2], [4, 4, 2]])  # rows alternate: view, view, view, view
REAL = jnp.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]) > 0


def drawn_logits(seed=0):
    return jax.random.normal(jax.random.key(seed), (4, 3, 5))


def loss_of(method, smoothing=0.1, weight=3.0):
    return partial(consistency_loss, smoothing=smoothing, method=method, weight=weight)


def in_float64(method, logits, smoothing, weight):
    """Objective, cross-entropy and divergence of the papers' formulas, summed over real tokens."""
    logits = np.asarray(logits, np.float64)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    p, q = log_probs[0::2], log_probs[1::2]
    labels, real = np.asarray(LABELS)[::2], np.asarray(REAL)[::2]

    def kl(a, b):
        return (np.exp(a) * (a - b)).sum(-1)

    def smoothed(a):
        return (1 - smoothing) * nats(a) - smoothing * a.mean(-1)

    def nats(a):
        return -np.take_along_axis(a, labels[..., None], -1)[..., 0]

    middle = np.log((np.exp(p) + np.exp(q)) / 2)
    divergence = {
        "r_drop": (kl(p, q) + kl(q, p)) / 2,
        "simcut": kl(p, q),
        "cutoff": (kl(p, middle) + kl(q, middle)) / 2,
    }[method]
    if method == "simcut":
        objective, cross = smoothed(p) + weight * divergence, nats(p)
    else:
        objective, cross = (smoothed(p) + smoothed(q) + weight * divergence) / 2, (nats(p) + nats(q)) / 2
    return [(each * real).sum() for each in (objective, cross, real, divergence)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("smoothing", "weight"), [(0.0, 1.0), (0.1, 3.0)])
def test_the_objective_of_each_paper(method, smoothing, weight):
    found = loss_of(method, smoothing, weight)(drawn_logits(), LABELS, REAL)
    np.testing.assert_allclose(found, in_float64(method, drawn_logits(), smoothing, weight), rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_gradients_by_finite_differences(method):
    logits = np.asarray(drawn_logits(), np.float64)
    gradient = jax.grad(lambda z: loss_of(method)(z, LABELS, REAL).objective)(drawn_logits())
    for place in [(0, 0, 0), (1, 1, 3), (2, 2, 4), (3, 0, 2), (0, 2, 1)]:
        step = np.zeros_like(logits)
        step[place] = 1e-5
        up, down = (in_float64(method, logits + sign * step, 0.1, 3.0)[0] for sign in (1, -1))
        assert float(gradient[place]) == pytest.approx((up - down) / 2e-5, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_padding_has_no_loss_and_no_gradient(method):
    logits = drawn_logits()
    gradient = jax.grad(lambda z: loss_of(method)(z, LABELS, REAL).objective)(logits)
    assert not gradient[~REAL].any()
    other = jnp.where(REAL[..., None], logits, 7 * drawn_logits(1))
    np.testing.assert_array_equal(loss_of(method)(other, LABELS, REAL), loss_of(method)(logits, LABELS, REAL))


def test_nothing_is_infinite_where_a_view_is_certain():
    logits = jnp.zeros((2, 1, 3)).at[0, 0, 0].set(1e4).at[1, 0, 1].set(1e4)
    for method in METHODS:
        found = loss_of(method)(logits, jnp.zeros((2, 1), int), jnp.ones((2, 1), bool))
        assert np.isfinite(np.asarray(found)).all()
