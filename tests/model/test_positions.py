"""Positions by hand, by loops and by their invariances."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from model.config import ModelConfig
from model.positions import RelativeBias, alibi_bias, bucket_of, rotate, sinusoidal_positions


def test_sinusoidal_positions_by_hand():
    code = sinusoidal_positions(jnp.array([[0, 3]]), 4)  # angles 3 and 3 / 10000^(1/2)
    expected = [[[0, 0, 1, 1], [np.sin(3), np.sin(0.03), np.cos(3), np.cos(0.03)]]]
    np.testing.assert_allclose(code, expected, atol=1e-6)


def test_rotation_is_multiplication_by_complex_numbers():
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 8))
    positions = np.random.default_rng(1).integers(0, 300, (2, 5))
    turns = np.exp(1j * positions[:, None, :, None] * 10_000.0 ** -(np.arange(4) / 4))
    expected = (x[..., :4] + 1j * x[..., 4:]) * turns
    result = rotate(jnp.asarray(x, jnp.float32), jnp.asarray(positions))
    np.testing.assert_allclose(result, np.concatenate([expected.real, expected.imag], axis=-1), atol=2e-4)


def test_alibi_slopes_are_those_of_the_paper():
    """Eight heads have the slopes 1/2, 1/4, … 1/256; the bias of a key is its distance times the slope, below 0."""
    bias = alibi_bias(jnp.array([[0, 5]]), jnp.array([[0, 1, 5, 7]]), heads=8)
    assert bias.shape == (1, 8, 2, 4)
    np.testing.assert_allclose(bias[0, 0], -np.array([[0, 1, 5, 7], [5, 4, 0, 2]]) / 2)
    np.testing.assert_allclose(bias[0, :, 0, 1], [-(2.0**-n) for n in range(1, 9)])


def bucket_by_search(distance: int, *, causal: bool) -> int:
    """T5's buckets one distance at a time: exact near, then by the logarithm, in float64."""
    count = 32 if causal else 16
    after = 0 if causal or distance <= 0 else 16
    steps = max(-distance, 0) if causal else abs(distance)
    if steps < count // 2:
        return after + steps
    share = math.log(steps / (count // 2)) / math.log(128 / (count // 2))
    return after + min(count // 2 + int(share * (count // 2) + 1e-9), count - 1)


@pytest.mark.parametrize("causal", [False, True])
def test_relative_buckets_by_arithmetic(causal):
    distances = range(-300, 301)
    result = bucket_of(jnp.array(distances), causal=causal)
    assert result.tolist() == [bucket_by_search(distance, causal=causal) for distance in distances]


def test_relative_bias_is_the_tables_entry_of_the_bucket():
    bias = RelativeBias(ModelConfig(d_model=8, num_heads=2), causal=False, rngs=nnx.Rngs(0))
    result = bias(jnp.array([[0, 9]]), jnp.array([[0, 1, 40]]))
    assert result.shape == (1, 2, 2, 3)
    np.testing.assert_array_equal(result[0, :, 0, 1], bias.table[...][17])  # one after
    np.testing.assert_array_equal(result[0, :, 1, 1], bias.table[...][8])  # eight before
    np.testing.assert_array_equal(result[0, :, 0, 2], bias.table[...][28])  # 40 after: 24 + ⌊8 log(5) / log(16)⌋
