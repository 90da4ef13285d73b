"""Label-smoothed cross-entropy against optax, arithmetic and its invariances."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import model.loss
from model.loss import cross_entropy, loss_in_chunks

smoothed_loss = jax.jit(partial(cross_entropy, smoothing=0.1))


def to_logits(x, table):
    return x @ table.T


def test_equals_optax_on_smoothed_labels():
    logits = jax.random.normal(jax.random.key(0), (3, 5, 7))
    labels = jax.random.randint(jax.random.key(1), (3, 5), 0, 7)
    real = jnp.arange(15).reshape(3, 5) % 4 != 0
    loss = smoothed_loss(logits, labels, real)
    smoothed = optax.softmax_cross_entropy(logits, optax.smooth_labels(jax.nn.one_hot(labels, 7), 0.1))
    plain = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    assert float(loss.objective) == pytest.approx(float(smoothed[real].sum()), rel=1e-6)
    assert float(loss.cross_entropy) == pytest.approx(float(plain[real].sum()), rel=1e-6)
    assert float(loss.tokens) == 11


def test_padding_has_no_loss_and_no_gradient():
    logits, labels, real = jax.random.normal(jax.random.key(0), (3, 6)), jnp.array([4, 0, 1]), jnp.array([1, 0, 1]) > 0
    gradient = jax.grad(lambda z: smoothed_loss(z, labels, real).objective)(logits)
    assert not gradient[1].any()
    kept = smoothed_loss(logits[real], labels[real], real[real])
    np.testing.assert_allclose(smoothed_loss(logits, labels, real), kept, rtol=1e-6)


@pytest.mark.parametrize(("length", "chunks"), [(16, 4), (7, 4), (2, 2)])
def test_in_chunks_it_is_the_same_sums_and_gradients(length, chunks, monkeypatch):
    monkeypatch.setattr(model.loss, "CHUNK", 3 * length // 4)
    x, table = jax.random.normal(jax.random.key(0), (3, length, 5)), jax.random.normal(jax.random.key(1), (11, 5))
    labels = jax.random.randint(jax.random.key(2), (3, length), 0, 11)
    real = jax.random.uniform(jax.random.key(3), labels.shape) < 0.7

    def whole(x, table):
        sums = cross_entropy(x @ table.T, labels, real, 0.1)
        return 2 * sums.objective, sums  # the factor is in the gradients, too

    def in_chunks(x, table):
        sums = loss_in_chunks(to_logits, partial(cross_entropy, smoothing=0.1), x, table, labels, real)
        return 2 * sums.objective, sums

    assert len(model.loss._chunks(x)[0]) == chunks
    expected, found = (jax.jit(jax.value_and_grad(f, (0, 1), has_aux=True))(x, table) for f in (whole, in_chunks))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, expected)
    np.testing.assert_allclose(jax.jit(in_chunks)(x, table)[1], expected[0][1], rtol=1e-6)  # without gradients


def test_no_array_holds_all_logits():
    def loss(x, table):
        ones = jnp.ones(x.shape[:2], bool)
        smoothed = partial(cross_entropy, smoothing=0.1)
        return loss_in_chunks(to_logits, smoothed, x, table, ones.astype(int), ones).objective

    shapes = jax.ShapeDtypeStruct((8, 1024, 16), jnp.float32), jax.ShapeDtypeStruct((4000, 16), jnp.float32)
    memory: Any = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(*shapes).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * 8 * 1024 * 4000  # one array of all logits
