"""Label-smoothed cross-entropy against optax, arithmetic and its invariances."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from model.loss import cross_entropy


def test_equals_optax_on_smoothed_labels():
    logits = jax.random.normal(jax.random.key(0), (3, 5, 7))
    labels = jax.random.randint(jax.random.key(1), (3, 5), 0, 7)
    real = jnp.arange(15).reshape(3, 5) % 4 != 0
    loss = cross_entropy(logits, labels, real, 0.1)
    smoothed = optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 7), 0.1))
    plain = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    assert float(loss.smoothed) == pytest.approx(float(smoothed[real].sum()), rel=1e-6)
    assert float(loss.cross_entropy) == pytest.approx(float(plain[real].sum()), rel=1e-6)
    assert float(loss.tokens) == 11


def test_uniform_logits_cost_the_logarithm_of_the_vocabulary():
    loss = cross_entropy(jnp.zeros((4, 50)), jnp.arange(4), jnp.ones(4, bool), 0.3)
    assert float(loss.smoothed) / 4 == pytest.approx(np.log(50), rel=1e-6)


def test_gradient_is_softmax_minus_smoothed_label():
    logits, labels = jax.random.normal(jax.random.key(0), (2, 6)), jnp.array([4, 1])
    gradient = jax.grad(lambda z: cross_entropy(z, labels, jnp.ones(2, bool), 0.1).smoothed)(logits)
    expected = jax.nn.softmax(logits) - optax.smooth_labels(jax.nn.one_hot(labels, 6), 0.1)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_padding_has_no_loss_and_no_gradient():
    logits, labels, real = jax.random.normal(jax.random.key(0), (3, 6)), jnp.array([4, 0, 1]), jnp.array([1, 0, 1]) > 0
    gradient = jax.grad(lambda z: cross_entropy(z, labels, real, 0.1).smoothed)(logits)
    assert not gradient[1].any()
    kept = cross_entropy(logits[real], labels[real], real[real], 0.1)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), cross_entropy(logits, labels, real, 0.1), kept
    )
