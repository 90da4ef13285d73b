"""The attention core against hand-made numbers, float64 NumPy, jax.nn and its own invariances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads

from attention import attend, attend_head, visible_keys, weigh


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def reference_head(query, key, value, visible):
    """softmax(QKᵀ/√d)V in float64, one query and one key at a time."""
    query, key, value = (np.asarray(array, np.float64) for array in (query, key, value))
    result = np.zeros((len(query), value.shape[1]))
    for t, q in enumerate(query):
        seen = [s for s in range(len(key)) if visible[t, s]]
        exponentials = [np.exp(q @ key[s] / np.sqrt(len(q))) for s in seen]
        for s, exponential in zip(seen, exponentials, strict=True):
            result[t] += exponential / sum(exponentials) * value[s]
    return result


def test_one_query_two_keys_by_hand():
    # Scores 2·2/√4 = 2 and 0; weights e²/(e²+1) = 0.880797 and 0.119203.
    query, key = jnp.array([[2.0, 0, 0, 0]]), jnp.array([[2.0, 0, 0, 0], [0, 5, 0, 0]])
    value = jnp.array([[1.0, 0], [0, 10]])
    result = attend_head(query, key, value, jnp.ones((1, 2), bool))
    np.testing.assert_allclose(result, [[0.880797, 1.19203]], rtol=1e-5)


@given(
    st.integers(1, 7), st.integers(1, 7), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**31), st.floats(0, 1)
)
def test_head_equals_float64_numpy(queries, keys, width, value_width, seed, density):
    query, key, value = normal(seed, queries, width), normal(seed + 1, keys, width), normal(seed + 2, keys, value_width)
    visible = jnp.asarray(np.random.default_rng(seed).random((queries, keys)) < density)
    result = attend_head(query, key, value, visible)
    np.testing.assert_allclose(result, reference_head(query, key, value, visible), atol=2e-6)


def test_all_heads_of_all_sentences_equal_jax_nn():
    query, key, value = normal(0, 2, 3, 5, 8), normal(1, 2, 3, 6, 8), normal(2, 2, 3, 6, 8)
    query_segments, key_segments = jnp.array([[1, 1, 2, 2, 2], [1] * 5]), jnp.array([[1] * 3 + [2] * 3, [1] * 6])
    result = attend(query, key, value, query_segments=query_segments, key_segments=key_segments, causal=False)
    mask = query_segments[:, None, :, None] == key_segments[:, None, None, :]
    time_first = query.swapaxes(1, 2), key.swapaxes(1, 2), value.swapaxes(1, 2)
    expected = jax.nn.dot_product_attention(*time_first, mask=mask).swapaxes(1, 2)
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_batch_equals_a_loop_over_sentences_and_heads():
    query, segments = normal(0, 2, 3, 5, 4), jnp.array([[1, 1, 2, 2, 0], [1, 1, 1, 0, 0]])
    result = attend(query, query, query, query_segments=segments, key_segments=segments, causal=True)
    for b in range(2):
        visible = visible_keys(segments[b], segments[b], causal=True)
        for n in range(3):
            one = attend_head(query[b, n], query[b, n], query[b, n], visible)
            np.testing.assert_allclose(result[b, n], one, atol=1e-6)


def test_weigh_is_what_attend_sums_the_values_with():
    query, key, value = normal(0, 2, 3, 5, 4), normal(1, 2, 3, 6, 4), normal(2, 2, 3, 6, 7)
    query_segments, key_segments = (
        jnp.array([[1, 1, 2, 2, 0], [1] * 5]),
        jnp.array([[1] * 3 + [2] * 3, [1] * 4 + [0] * 2]),
    )
    segments = {"query_segments": query_segments, "key_segments": key_segments}
    weights = weigh(query, key, **segments, causal=True)
    np.testing.assert_allclose(weights @ value, attend(query, key, value, **segments, causal=True), atol=1e-6)
    sees_something = np.array([[1, 1, 0, 1, 0], [1] * 5])[:, None]  # with causality, the third query sees no key
    np.testing.assert_allclose(np.sum(weights, axis=-1), np.broadcast_to(sees_something, (2, 3, 5)), atol=1e-6)


def test_visibility_by_hand():
    segments = jnp.array([1, 1, 2, 0])
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(visible_keys(segments, segments, causal=True), np.array(expected, bool))


@pytest.mark.parametrize("causal", [False, True])
def test_what_is_not_visible_changes_nothing_bit_for_bit(causal):
    query, key, value = normal(0, 1, 2, 6, 4), normal(1, 1, 2, 6, 4), normal(2, 1, 2, 6, 4)
    segments = jnp.array([[1, 1, 1, 2, 2, 0]])

    def first_sentence(key, value):
        result = attend(query, key, value, query_segments=segments, key_segments=segments, causal=causal)
        return np.asarray(result)[:, :, :3]

    other_key, other_value = key.at[:, :, 3:].set(1e6), value.at[:, :, 3:].set(-1e6)
    np.testing.assert_array_equal(first_sentence(key, value), first_sentence(other_key, other_value))


def test_the_future_cannot_change_the_past():
    query, key, value = normal(0, 1, 2, 5, 4), normal(1, 1, 2, 5, 4), normal(2, 1, 2, 5, 4)
    segments = jnp.ones((1, 5), jnp.int32)
    for now in range(5):
        later_key, later_value = key.at[:, :, now + 1 :].set(7.0), value.at[:, :, now + 1 :].set(9.0)
        results = [
            np.asarray(attend(query, k, v, query_segments=segments, key_segments=segments, causal=True))
            for k, v in ((key, value), (later_key, later_value))
        ]
        np.testing.assert_array_equal(results[0][:, :, : now + 1], results[1][:, :, : now + 1])


def test_permuting_keys_with_values_changes_nothing():
    query, key, value, order = normal(0, 4, 8), normal(1, 6, 8), normal(2, 6, 3), np.array([3, 1, 5, 0, 2, 4])
    visible = jnp.ones((4, 6), bool)
    np.testing.assert_allclose(
        attend_head(query, key, value, visible), attend_head(query, key[order], value[order], visible), atol=1e-6
    )


def test_a_query_that_sees_nothing_yields_zeros_and_zero_gradients():
    query, key, value = normal(0, 2, 4), normal(1, 3, 4), normal(2, 3, 4)
    visible = jnp.array([[True, True, False], [False, False, False]])

    def second_row(query, key, value):
        return attend_head(query, key, value, visible)[1]

    np.testing.assert_array_equal(second_row(query, key, value), np.zeros(4))
    gradients = jax.jacobian(second_row, argnums=(0, 1, 2))(query, key, value)
    for gradient in gradients:
        np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


def test_gradients_equal_finite_differences():
    arguments = normal(0, 3, 4), normal(1, 5, 4), normal(2, 5, 2)
    visible = visible_keys(jnp.array([1, 1, 2]), jnp.array([1, 1, 2, 2, 0]), causal=False)

    def head(query, key, value):
        return attend_head(jnp.asarray(query), jnp.asarray(key), jnp.asarray(value), visible)

    check_grads(head, arguments, order=1, modes=["rev"], eps=1e-2, atol=1e-3, rtol=1e-3)


def test_large_scores_do_not_overflow():
    query = jnp.full((1, 4), 1e4)
    result = attend_head(query, jnp.stack([query[0], -query[0]]), jnp.array([[3.0], [5.0]]), jnp.ones((1, 2), bool))
    np.testing.assert_allclose(result, [[3.0]])


def test_bfloat16_inputs_have_a_float32_softmax():
    query, key, value = normal(0, 4, 16), normal(1, 200, 16), normal(2, 200, 8)
    low = query.astype("bfloat16"), key.astype("bfloat16"), value.astype("bfloat16")
    visible = jnp.ones((4, 200), bool)
    result = attend_head(*low, visible)
    assert result.dtype == jnp.bfloat16
    expected = reference_head(*low, visible)  # of the rounded inputs: only weights and result are rounded again
    np.testing.assert_allclose(np.asarray(result, np.float32), expected, atol=4e-3)
