"""One head of one sentence: by hand, in float64 loops, by finite differences, and what must not change it."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads

from attention.head import attend_head, head_weights
from attention.masks import visible_keys
from attention.scores import SCORES, Score, general
from tests.attention.oracles import make_score, normal, reference_head, reference_weights

TWO_KEYS: dict[str, Any] = {  # their scores are 2·2/√4 = 2 and 0
    "query": jnp.array([[2.0, 0, 0, 0]]),
    "key": jnp.array([[2.0, 0, 0, 0], [0, 5, 0, 0]]),
    "value": jnp.array([[1.0, 0], [0, 10]]),
}


def test_one_query_two_keys_by_hand():
    # Weights e²/(e²+1) = 0.880797 and 0.119203.
    result = attend_head(**TWO_KEYS, visible=jnp.ones((1, 2), bool))
    np.testing.assert_allclose(result, [[0.880797, 1.19203]], rtol=1e-5)


def test_the_only_visible_key_gives_its_value_exactly():
    result = attend_head(**TWO_KEYS, visible=jnp.array([[False, True]]), bias=jnp.array([[9.0, -9]]))
    np.testing.assert_array_equal(result, [[0, 10]])


@settings(max_examples=30)
@given(
    st.sampled_from([1, 4]),
    st.sampled_from([1, 6]),
    st.sampled_from([(4, 4), (5, 2)]),
    st.sampled_from(list(SCORES)),
    st.booleans(),
    st.floats(0, 1),
    st.integers(0, 2**31),
)
def test_head_equals_float64_loops(queries, keys, widths, name, has_bias, density, seed):
    (width, value_width), rng = widths, np.random.default_rng(seed)
    query, key = normal([seed, 0], queries, width), normal([seed, 1], keys, width)
    value, bias = normal([seed, 2], keys, value_width), normal([seed, 3], queries, keys) if has_bias else None
    visible, score = jnp.asarray(rng.random((queries, keys)) < density), make_score(name, [seed, 4], width)
    result = attend_head(query, key, value, visible, bias, score)
    np.testing.assert_allclose(result, reference_head(query, key, value, visible, bias, score), atol=3e-6)


@pytest.mark.parametrize("dropout", [{}, {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}])
def test_a_query_that_sees_nothing_yields_zeros_and_zero_gradients(dropout):
    query, key, value, bias = normal(0, 2, 4), normal(1, 3, 4), normal(2, 3, 4), normal(3, 2, 3)
    visible = jnp.array([[True, True, False], [False, False, False]])

    def second_row(query, key, value, bias):
        return attend_head(query, key, value, visible, bias, **dropout)[1]

    np.testing.assert_array_equal(second_row(query, key, value, bias), np.zeros(4))
    for gradient in jax.jit(jax.jacobian(second_row, argnums=(0, 1, 2, 3)))(query, key, value, bias):
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


@pytest.mark.parametrize("name", SCORES)
def test_gradients_equal_finite_differences(name):
    query, key, value, bias = normal(0, 3, 4), normal(1, 5, 4), normal(2, 5, 2), normal(3, 3, 5)
    visible = visible_keys(jnp.array([1, 1, 2]), jnp.array([1, 1, 2, 2, 0]), causal=False)

    @jax.jit
    def head(query, key, value, bias, score):
        return attend_head(query, key, value, visible, bias, score)

    arguments = query, key, value, bias, make_score(name, 4, 4)
    check_grads(head, arguments, order=1, modes=["rev"], eps=1e-2, atol=2e-3, rtol=2e-3)


def test_gradients_equal_their_formulas_in_float64():
    # With P the weights and dO the gradient of the output: dV = Pᵀ dO, dP = dO Vᵀ, dS = P (dP − Σₛ P dP),
    # dQ = dS K / √H, dK = dSᵀ Q / √H, and the bias gets dS (Dao et al. 2022, appendix B.4).
    query, key, value, output_gradient = normal(0, 4, 9), normal(1, 6, 9), normal(2, 6, 3), normal(3, 4, 3)
    visible, bias = jnp.asarray(np.random.default_rng(4).random((4, 6)) < 0.6), normal(5, 4, 6)
    _, pullback = jax.vjp(lambda q, k, v, b: attend_head(q, k, v, visible, b), query, key, value, bias)
    q, k, v, dO = (np.asarray(array, np.float64) for array in (query, key, value, output_gradient))
    P, dP = reference_weights(query, key, visible, bias), dO @ v.T
    dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))
    for gradient, expected in zip(pullback(output_gradient), (dS @ k / 3, dS.T @ q / 3, P.T @ dO, dS), strict=True):
        np.testing.assert_allclose(gradient, expected, atol=3e-6)


def test_large_scores_neither_overflow_nor_vanish():
    query, value, both = jnp.full((1, 4), 1e4), jnp.array([[3.0], [5.0]]), jnp.ones((1, 2), bool)
    np.testing.assert_array_equal(attend_head(query, jnp.stack([query[0], -query[0]]), value, both), [[3.0]])
    far_below_zero = jnp.stack([-query[0], -query[0]])
    np.testing.assert_array_equal(attend_head(query, far_below_zero, value, both), [[4.0]])


def test_an_invisible_key_does_not_set_the_scale_of_the_visible_ones():
    # Shifted by the hidden key's score, both exponentials would be zero.
    key, value = jnp.array([[1000.0], [0], [1]]), jnp.array([[100.0], [0], [1]])
    result = attend_head(jnp.ones((1, 1)), key, value, jnp.array([[False, True, True]]))
    np.testing.assert_allclose(result, [[0.731059]], rtol=1e-5)  # e / (1 + e)


@pytest.mark.parametrize("name", [name for name in SCORES if name != "general"])
def test_bfloat16_inputs_have_float32_scores_and_softmax(name):
    # Of the rounded inputs, only the weights and the result are rounded again, each by at most 2⁻⁹ of its size: less
    # than 2⁻⁸ of the largest value. Scores rounded to bfloat16 would be off by 2⁻⁹ of more than ten.
    shapes = (4, 16), (200, 16), (200, 8)
    query, key, value = (normal(seed, *shape, dtype="bfloat16") for seed, shape in enumerate(shapes))
    visible, score = jnp.ones((4, 200), bool), make_score(name, 3, 16)
    query = query * {"scaled_dot_product": 8, "dot_product": 2}.get(name, 1)  # by a power of two: no rounding
    result = attend_head(query, key, value, visible, score=score)
    assert result.dtype == jnp.bfloat16
    assert head_weights(query, key, visible, score=score).dtype == jnp.float32
    expected = reference_head(query, key, value, visible, score=score)
    tolerance = 2**-8 * float(jnp.abs(value).max())
    np.testing.assert_allclose(np.asarray(result, np.float64), expected, atol=tolerance)


def test_the_general_score_turns_queries_in_bfloat16():
    # W and Wᵀq are rounded as well, as a projection would be: scores are off by up to 2⁻⁸ Σ|Wᵀq|·|k|, weights by e to
    # the power of twice that.
    query, key, value = (normal(seed, *shape, dtype="bfloat16") for seed, shape in enumerate([(4, 8), (9, 8), (9, 3)]))
    matrix, visible = normal(3, 8, 8) / 8, jnp.ones((4, 9), bool)
    off = 2**-8 * np.max(np.abs(query.astype(float)) @ np.abs(matrix) @ np.abs(key.astype(float)).T)
    result = attend_head(query, key, value, visible, score=Score(general, matrix))
    expected = reference_head(query, key, value, visible, score=Score(general, matrix))
    tolerance = (math.exp(2 * off) - 1 + 2**-8) * float(jnp.abs(value).max())
    assert tolerance < 0.2
    np.testing.assert_allclose(np.asarray(result, np.float64), expected, atol=tolerance)


def test_dropout_drops_its_share_of_the_weights_and_scales_the_others():
    # 10,000 weights of 10⁻⁴, a quarter dropped: each is 0 or 10⁻⁴ / 0.75, and the number of zeros has the standard
    # deviation √(10,000 · 0.25 · 0.75) = 43.3: within five of them. The gradient of Σ w·v by the values is w.
    query, keys, visible = jnp.zeros((1, 1)), jnp.zeros((10_000, 1)), jnp.ones((1, 10_000), bool)

    def total(values):
        return attend_head(query, keys, values, visible, dropout_rate=0.25, dropout_key=jax.random.key(0)).sum()

    weights = np.asarray(jax.grad(total)(keys))
    dropped = weights == 0
    np.testing.assert_allclose(weights[~dropped], 1e-4 / 0.75, rtol=1e-5)
    assert abs(dropped.sum() - 2500) < 5 * 43.3
