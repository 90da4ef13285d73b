"""All heads of all sentences: against loops, and what must not change them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.masks import Mask, visible_keys
from attention.multihead import attend, attention_weights
from attention.scores import SCORES
from tests.attention.oracles import differentiate, make_score, normal, qkv, reference
from tests.variants import KERNELS_ANYWHERE

compiled = jax.jit(attend, static_argnames=("dropout_rate", "kernel"))
# Packed, with padding in the middle and at the end; a target without a source and the other way round; and a row of
# padding.
QUERY_SEGMENTS = jnp.array([[1, 1, 2, 2, 3], [1, 1, 0, 2, 2], [0] * 5])
KEY_SEGMENTS = jnp.array([[1, 1, 1, 2, 2, 4], [1, 2, 2, 2, 0, 0], [1] * 6])
CROSS, CAUSAL = (Mask(QUERY_SEGMENTS, KEY_SEGMENTS, causal) for causal in (False, True))


@pytest.mark.parametrize(("groups", "causal"), [(1, False), (2, True), (4, False)])
@pytest.mark.parametrize("name", SCORES)
def test_attention_equals_float64_loops(name, groups, causal):
    query, key, value = qkv(0, 3, 4, groups, 5, 6, 4, 3)
    options: dict[str, Any] = {"score": make_score(name, 3, 4, (4,)), "bias": normal(4, 3, 4, 5, 6)}
    options["mask"] = CAUSAL if causal else CROSS
    result = attend(query, key, value, **options)
    np.testing.assert_allclose(result, reference(query, key, value, **options), atol=3e-6)
    assert np.all(result[2] == 0) and np.all(result[1, :, 2] == 0) and np.all(result[0, :, 4] == 0)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_attend_sums_the_values_with_the_attention_weights(groups):
    query, key, value = qkv(0, 3, 4, groups, 5, 6, 4, 7)
    options = {"mask": CAUSAL, "bias": normal(1, 3, 4, 5, 6), "score": make_score("general", 2, 4, (4,))}
    weights = attention_weights(query, key, **options)
    value_of_head = np.repeat(value, 4 // groups, axis=1)
    np.testing.assert_allclose(weights @ value_of_head, attend(query, key, value, **options), atol=3e-6)
    visible = np.array(list(map(partial(visible_keys, causal=True), QUERY_SEGMENTS, KEY_SEGMENTS)))[:, None]
    sees_something = np.broadcast_to(visible.any(axis=-1), (3, 4, 5))
    np.testing.assert_allclose(np.sum(weights, axis=-1), sees_something, atol=1e-6)
    np.testing.assert_array_equal(np.where(visible, 0, weights), 0)


def at(places, arrays, segments, kernel, causal):
    """The outputs there, and the gradients of their sum."""
    output_gradient = jnp.zeros(arrays[0].shape).at[:, :, places].set(1)
    inputs = dict(zip(("query", "key", "value"), arrays, strict=True))
    result = differentiate(inputs, output_gradient, Mask(segments, segments, causal), kernel=kernel)
    return [np.asarray(array)[:, :, places] for array in result.values()]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", KERNELS_ANYWHERE)
def test_padding_and_other_sentences_change_nothing_bit_for_bit(kernel, causal):
    query, key, value = qkv(0, 1, 4, 2, 7, 7, 4, 4)
    segments = np.array([1, 1, 0, 2, 2, 3, 0])
    for segment in (1, 2, 3):
        places, others = np.nonzero(segments == segment)[0], np.nonzero(segments != segment)[0]
        changed = query.at[:, :, others].set(-1e3), key.at[:, :, others].set(1e3), value.at[:, :, others].set(-1e6)
        before, after = (at(places, x, jnp.array([segments]), kernel, causal) for x in ((query, key, value), changed))
        for name, one, other in zip(["output", *"qkv"], before, after, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{name} of segment {segment}")


@pytest.mark.parametrize("kernel", KERNELS_ANYWHERE)
def test_the_future_cannot_change_the_past_bit_for_bit(kernel):
    query, key, value = qkv(0, 1, 4, 2, 7, 7, 4, 4)
    for now in range(7):
        later = [array.at[:, :, now + 1 :].set(number) for array, number in ((query, 5), (key, 70), (value, 9e4))]
        segments, past = jnp.ones((1, 7), int), np.arange(now + 1)
        before, after = (at(past, x, segments, kernel, causal=True) for x in ((query, key, value), later))
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


def thinned(groups):
    """Which of 64 equal weights dropout leaves, by sentence, head, query and key; every head gets the same inputs."""
    mask = Mask(jnp.ones((2, 3), int), jnp.ones((2, 64), int))
    value = jnp.broadcast_to(jnp.eye(64), (2, groups, 64, 64))
    query, key = jnp.ones((2, 4, 3, 1)), jnp.ones((2, groups, 64, 1))
    return np.asarray(compiled(query, key, value, mask=mask, dropout_rate=0.5, dropout_key=jax.random.key(0)))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_sentence_head_and_query_drops_weights_of_its_own(groups):
    left = thinned(groups)
    np.testing.assert_allclose(left[left != 0], 2 / 64)
    patterns = {tuple(row != 0) for row in left.reshape(-1, 64)}
    assert len(patterns) == 2 * 4 * 3
    # Two independent patterns differ in 32 ± 4 of 64 places.
    rows = left.reshape(-1, 64) != 0
    assert all(12 < np.sum(a != b) < 52 for i, a in enumerate(rows) for b in rows[:i])
