"""Matrix product, dropout, norm, residual and positions against autodiff, NumPy and arithmetic."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention.masks import Mask
from attention.scores import SCORES
from model.activations import ACTIVATIONS
from model.config import NORMS, ModelConfig
from model.layers import (
    Draws,
    FeedForward,
    LayerNorm,
    LearnedScore,
    MultiHeadAttention,
    QueryKeyNorm,
    Residual,
    bernoulli,
    dropout,
)
from model.matmul import matmul

CONFIG = ModelConfig(d_model=8, num_heads=2, head_dim=4, d_ff=16, encoder_layers=1, decoder_layers=1)


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


@pytest.mark.parametrize(("shape", "contract"), [((4, 5), 0), ((5, 4), 1)])
def test_matmul_and_its_gradients_equal_autodiff(shape, contract):
    """Also over the other axis of the matrix, where it is the product with its transpose."""
    x, kernel, weight = normal(0, 2, 3, 4), normal(1, *shape), normal(2, 2, 3, 5)
    ours = jax.value_and_grad(lambda x, k: jnp.sum(matmul(x, k, "float32", contract) * weight), (0, 1))(x, kernel)
    plain = jax.value_and_grad(lambda x, k: jnp.sum(x @ (k.T if contract else k) * weight), (0, 1))(x, kernel)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), ours, plain)


def test_matmul_in_bfloat16_rounds_operands_and_sums_in_float32():
    x, kernel = normal(0, 64, 512), normal(1, 512, 32)
    rounded = [np.asarray(array.astype(jnp.bfloat16), np.float64) for array in (x, kernel)]
    result = matmul(x, kernel, "bfloat16")
    assert result.dtype == jnp.float32
    np.testing.assert_allclose(result, rounded[0] @ rounded[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("contract", [0, 1])
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 32), (32, 64), (48, 48)])
def test_the_gradient_of_a_kernel_in_bfloat16_sums_in_float32(inputs, outputs, contract):
    """Of kernels that widen and that narrow, as they are and transposed; the gradient of the result is its weight."""
    x, weight = normal(0, 3, 100, inputs), normal(1, 3, 100, outputs)
    kernel = jnp.zeros((inputs, outputs) if contract == 0 else (outputs, inputs))
    gradient = jax.jit(jax.grad(lambda kernel: jnp.sum(matmul(x, kernel, "bfloat16", contract) * weight)))(kernel)
    assert gradient.dtype == jnp.float32
    x, weight = (np.asarray(each.astype(jnp.bfloat16), np.float64).reshape(300, -1) for each in (x, weight))
    expected = x.T @ weight if contract == 0 else weight.T @ x
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-4)


def test_dropout_keeps_the_mean_and_drops_the_rate():
    dropped = dropout(jnp.ones(100_000), 0.3, Draws(jax.random.key(0)))
    assert set(np.unique(dropped)) == {0.0, np.float32(1 / 0.7)}
    assert np.mean(np.asarray(dropped) == 0) == pytest.approx(0.3, abs=0.005)  # 3.4 standard deviations
    assert dropout(jnp.ones(3), 0.3, None).tolist() == [1, 1, 1]


@pytest.mark.parametrize("probability", [0.0, 2**-16, 0.25, 0.9, 1 - 2**-16, 1.0])
@pytest.mark.parametrize("shape", [(500, 1), (500, 6), (500, 7), (5, 7, 3)], ids=str)
def test_a_draw_compares_sixteen_bits_of_a_word(probability, shape):
    """Each word of a row is two numbers, of its low bits and, after all of those, of its high ones."""
    *rows, width = shape
    words = np.asarray(jax.random.bits(jax.random.key(3), (*rows, (width + 1) // 2)))
    expected = np.concatenate([words & 0xFFFF, words >> 16], axis=-1)[..., :width] / 2**16 < probability
    np.testing.assert_array_equal(bernoulli(jax.random.key(3), probability, shape), expected)


def test_draws_of_a_word_are_independent():
    first, second = np.split(np.asarray(bernoulli(jax.random.key(4), 0.5, (200, 1000))), 2, axis=1)
    both = (first & second).mean(), (first & ~second).mean(), (~first & second).mean()
    np.testing.assert_allclose(both, 0.25, atol=5 * (0.25 * 0.75 / first.size) ** 0.5)  # five standard deviations


def test_layer_norm_equals_flax():
    x = normal(0, 2, 3, 8) * 5 + 2
    np.testing.assert_allclose(LayerNorm(8)(x), nnx.LayerNorm(8, rngs=nnx.Rngs(0))(x), atol=1e-5)


def normed(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)


RESIDUALS = {"pre": lambda x: x + 2 * normed(x), "post": lambda x: normed(x + 2 * x)}  # around a sublayer that doubles


@pytest.mark.parametrize("norm", NORMS)
def test_residual_is_the_formula_of_its_paper(norm):
    x, residual = normal(0, 1, 2, 8), Residual(ModelConfig(d_model=8, norm=norm))
    expected = RESIDUALS[norm](np.asarray(x, np.float64))
    np.testing.assert_allclose(residual.add(x, 2 * residual.enter(x), None), expected, rtol=1e-4, atol=1e-5)


FORMULAS = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu_squared": lambda x: np.maximum(x, 0) ** 2,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_is_its_formula(activation):
    x = np.linspace(-6, 6, 25)
    np.testing.assert_allclose(ACTIVATIONS[activation](jnp.asarray(x)), FORMULAS[activation](x), atol=1e-6)


def test_a_gated_network_by_its_formula():
    """(silu(x W + b) ⊙ (x V + c)) W₂ + b₂: SwiGLU (Shazeer 2020, section 2), with biases."""
    layer: Any = FeedForward(replace(CONFIG, gated=True, activation="silu"), rngs=nnx.Rngs(0))
    layer.gate.bias[...], x = normal(1, 16), normal(3, 1, 5, 8)
    gate, up = (np.asarray(x, np.float64) @ np.asarray(each.kernel[...]) for each in (layer.gate, layer.up))
    hidden = FORMULAS["silu"](gate + np.asarray(layer.gate.bias[...])) * up
    np.testing.assert_allclose(layer(x), hidden @ np.asarray(layer.down.kernel[...]), rtol=1e-4, atol=1e-5)


def test_the_length_of_a_query_does_not_matter_and_that_of_zero_has_a_gradient():
    weight, x = normal(0, 1, 2, 3, 4), normal(1, 1, 2, 3, 4)
    gradient = jax.grad(lambda x: jnp.sum(QueryKeyNorm(CONFIG).of_queries(x) * weight))
    np.testing.assert_allclose(jnp.sum(gradient(x) * x, axis=-1), 0, atol=1e-4)
    assert jnp.isfinite(gradient(0 * x)).all()


def test_multi_head_attention_equals_flax_with_the_same_weights():
    ours = MultiHeadAttention(CONFIG, rngs=nnx.Rngs(0))
    theirs = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=nnx.Rngs(1))
    for role, linear in (("query", theirs.query), ("key", theirs.key), ("value", theirs.value)):
        dense = getattr(ours, role)
        assert linear.bias is not None
        dense.bias[...] = normal(7, 8)
        linear.kernel[...], linear.bias[...] = dense.kernel[...].reshape(8, 2, 4), dense.bias[...].reshape(2, 4)
    theirs.out.kernel[...] = ours.output.kernel[...].reshape(2, 4, 8)
    x, context = normal(3, 2, 5, 8), normal(4, 2, 6, 8)
    result = ours(x, context, Mask(jnp.ones((2, 5), jnp.int32), jnp.ones((2, 6), jnp.int32)))
    np.testing.assert_allclose(result, theirs(x, context, context), atol=2e-6)


def test_the_projections_of_grouped_heads_and_wide_values_have_their_widths():
    config = ModelConfig(d_model=6, num_heads=4, head_dim=3, key_value_heads=2, value_dim=5)
    attention = MultiHeadAttention(config, rngs=nnx.Rngs(0))
    shapes = {role: getattr(attention, role).kernel[...].shape for role in ("query", "key", "value", "output")}
    assert shapes == {"query": (6, 12), "key": (6, 6), "value": (6, 10), "output": (20, 6)}


VARIANCES = {"scaled_dot_product": 1.0, "dot_product": 64.0, "general": 1.0, "additive": 0.6}


@pytest.mark.parametrize("score", SCORES)
def test_scores_start_with_the_variance_that_their_softmax_can_use(score):
    """About 1 for queries and keys of variance 1; the unscaled product's is the width, which is why it is scaled."""
    learned = LearnedScore(ModelConfig(d_model=8, num_heads=16, head_dim=64, score=score), rngs=nnx.Rngs(0))()
    query, key = normal(0, 16, 30, 64), normal(1, 16, 30, 64)
    scores = jax.vmap(lambda learned, query, key: learned(query, key))(learned, query, key)
    assert float(scores.var(axis=(1, 2)).mean()) == pytest.approx(VARIANCES[score], rel=0.35)
