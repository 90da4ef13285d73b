"""A function that is compiled a second time is told of, and nothing else is."""

import jax
import jax.numpy as jnp

from training.compilation import recompilations_told


def test_another_shape_is_told_and_the_same_shape_and_other_functions_are_not():
    told: list[float] = []

    def double(x):
        return 2 * x

    def triple(x):
        return 3 * x

    doubled, tripled = jax.jit(double), jax.jit(triple)
    with recompilations_told("double", told.append):
        for length in (3, 3, 3):
            doubled(jnp.zeros(length))
        tripled(jnp.zeros(3))
        tripled(jnp.zeros(4))
        assert told == []
        doubled(jnp.zeros(4))
        assert len(told) == 1 and told[0] > 0
    doubled(jnp.zeros(5))
    assert len(told) == 1
