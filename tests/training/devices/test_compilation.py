"""A function is compiled once, ahead of its first call; a second time is told of, and nothing else is."""

import jax
import jax.numpy as jnp

from training.devices.compilation import compile_ahead, recompilations_told


def test_another_shape_is_told_and_the_same_shape_and_other_functions_are_not():
    told: list[str] = []

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
        assert len(told) == 1 and told[0].startswith("double was compiled again")
    doubled(jnp.zeros(5))
    assert len(told) == 1


def test_what_is_compiled_ahead_is_not_compiled_at_the_first_call():
    told: list[str] = []
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def halve(x):
        return x / 2

    halved = jax.jit(halve, donate_argnums=0)
    with recompilations_told("halve", told.append):
        compile_ahead(halved, jax.ShapeDtypeStruct((3,), jnp.float32, sharding=place))
        for _ in range(2):
            assert halved(jax.device_put(jnp.ones(3), place)).tolist() == [0.5, 0.5, 0.5]
        assert told == []
