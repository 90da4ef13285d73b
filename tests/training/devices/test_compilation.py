"""A function that was compiled ahead is not compiled at its calls; another compilation is reported."""

import jax
import jax.numpy as jnp

from training.devices.compilation import compile_ahead, report_compilations


def test_compilations_of_the_function_are_reported_and_calls_and_other_functions_are_not():
    lines: list[str] = []

    def double(x):
        return 2 * x

    def triple(x):
        return 3 * x

    doubled, tripled = jax.jit(double), jax.jit(triple)
    doubled(jnp.zeros(3))
    with report_compilations("double", lines.append):
        doubled(jnp.zeros(3))
        tripled(jnp.zeros(3))
        assert lines == []
        doubled(jnp.zeros(4))
        assert len(lines) == 1 and lines[0].startswith("double was compiled again")
    doubled(jnp.zeros(5))
    assert len(lines) == 1


def test_what_is_compiled_ahead_is_not_compiled_at_the_first_call():
    lines: list[str] = []
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def halve(x):
        return x / 2

    halved = jax.jit(halve, donate_argnums=0)
    compile_ahead(halved, jax.ShapeDtypeStruct((3,), jnp.float32, sharding=place))
    with report_compilations("halve", lines.append):
        for _ in range(2):
            assert halved(jax.device_put(jnp.ones(3), place)).tolist() == [0.5, 0.5, 0.5]
        assert lines == []
