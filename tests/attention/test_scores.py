"""The score functions: by hand, in float64, and as the dot products that fused kernels take."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.head import head_weights
from attention.scores import DOT_PRODUCTS, SCORES, additive, as_dot_product, dot_product, general, scaled_dot_product
from tests.attention.oracles import make_score, normal, reference_weights

each_score = pytest.mark.parametrize("name", SCORES)


def test_scaled_dot_product_by_hand():
    # (1·3 + 2·4) / √2, (1·0 − 2·1) / √2 and (1·1 + 2·1) / √2: the root of the width, not of the number of keys.
    scores = scaled_dot_product(jnp.array([[1.0, 2]]), jnp.array([[3.0, 4], [0, -1], [1, 1]]))
    np.testing.assert_allclose(scores, [[7.778175, -1.414214, 2.121320]], rtol=1e-6)


def test_dot_product_by_hand():
    scores = dot_product(jnp.array([[1.0, 2], [5, 0]]), jnp.array([[3.0, 4]]))
    np.testing.assert_array_equal(scores, [[11.0], [15.0]])


def test_general_by_hand():
    # qᵀW = (1·1 + 2·0, 1·3 + 2·2) = (1, 7); its products with (5, −1) and (0, 1). W q would be (7, 4).
    matrix = jnp.array([[1.0, 3], [0, 2]])
    np.testing.assert_array_equal(general(matrix, jnp.array([[1.0, 2]]), jnp.array([[5.0, -1], [0, 1]])), [[-2.0, 7]])


def test_additive_by_hand():
    # 2·tanh(0.5 + 0.5) − 3·tanh(1 − 1) = 2·0.7615942, and 2·tanh(0.5) − 3·tanh(3) = 0.9242343 − 2.9851644
    scores = additive(jnp.array([2.0, -3]), jnp.array([[0.5, 1]]), jnp.array([[0.5, -1], [0, 2]]))
    np.testing.assert_allclose(scores, [[1.5231883, -2.0609301]], rtol=1e-6)


@pytest.mark.parametrize("name", DOT_PRODUCTS)
def test_as_a_dot_product_a_score_is_the_same(name):
    query, key, score = normal(0, 2, 3, 4, 8), normal(1, 2, 3, 5, 8), make_score(name, 2, 8, heads=(3,))
    turned, scale = as_dot_product(score, query)
    heads = jax.vmap(jax.vmap(lambda score, query, key: score(query, key)), in_axes=(None, 0, 0))(score, query, key)
    np.testing.assert_allclose(scale * np.einsum("BNTH,BNSH->BNTS", turned, key), heads, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SCORES.keys() - DOT_PRODUCTS)
def test_any_other_score_is_no_dot_product(name):
    with pytest.raises(ValueError, match=f"{name} is not a dot product"):
        as_dot_product(make_score(name, 0, 3, heads=(2,)), normal(1, 1, 2, 4, 3))


# Queries and keys on which a quotient, a root or an exponential may fail; gradients too must be numbers there.
HOSTILE = {
    "zero queries": (0, 1),
    "zero keys": (1, 0),
    "zeros": (0, 0),
    "tiny": (1e-30, 1e-30),
    "tiny next to large": (1e-30, 1e4),
    "large": (1e4, 1e4),
}


@each_score
@pytest.mark.parametrize(("of_queries", "of_keys"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_queries_and_keys_give_the_oracles_weights_and_finite_gradients(name, of_queries, of_keys):
    query, key, score = normal(0, 3, 4) * of_queries, normal(1, 5, 4) * of_keys, make_score(name, 2, 4)
    visible, wanted = jnp.ones((3, 5), bool), normal(3, 3, 5)

    def weights(query, key, score):
        return head_weights(query, key, visible, score=score)

    found, pull_back = jax.vjp(weights, query, key, score)
    np.testing.assert_allclose(found, reference_weights(query, key, visible, score=score), atol=1e-6)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(pull_back(wanted)))
