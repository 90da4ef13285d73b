"""A function that was compiled ahead is not compiled at its calls; another compilation is reported."""

import re

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from data.batches.packing import Batch
from training.devices.compilation import compile_ahead, list_changes, report_compilations


def test_compilations_are_reported_with_what_changed_and_calls_and_other_functions_are_not():
    lines: list[str] = []

    def double(x):
        return 2 * x

    def triple(x):
        return 3 * x

    doubled, tripled = jax.jit(double), jax.jit(triple)
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    x = jnp.zeros(3)
    doubled(x)
    with report_compilations(
        "double", {"x": jax.ShapeDtypeStruct((3,), jnp.float32, sharding=place)}, lambda: {"x": x}, lines.append
    ):
        doubled(x)
        tripled(x)
        assert lines == []
        x = jnp.zeros(4)
        doubled(x)
        assert len(lines) == 1
        assert re.fullmatch(r"double was compiled again in [\d.]+ s: x: float32\[3\] → float32\[4\]", lines[0])
    doubled(jnp.zeros(5))
    assert len(lines) == 1


def test_a_change_is_told_by_the_path_of_its_array_with_shape_dtype_and_sharding():
    mesh = jax.make_mesh((1,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    by_rows, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (["data"], []))

    def tree(rows, dtype, sharding, **others):
        return {
            "batch": Batch(*(jax.ShapeDtypeStruct((rows, 8), dtype, sharding=sharding) for _ in Batch._fields))
        } | others

    old, field = tree(4, jnp.int32, by_rows), Batch._fields[0]
    assert list_changes(old, tree(4, jnp.int32, by_rows)) == []
    assert list_changes(old, tree(4, jnp.int32, everywhere))[0] == (
        f"batch.{field}: P('data',) on mesh {{'data': 1}} → P() on mesh {{'data': 1}}"
    )
    assert list_changes(old, tree(6, jnp.int8, by_rows))[0] == f"batch.{field}: int32[4, 8] → int8[6, 8]"
    assert list_changes(old, tree(4, jnp.int32, by_rows, averaged=1.0)) == ["averaged is new"]
    assert list_changes({"scale": jnp.asarray(1.0)}, {"scale": jnp.float32(1) + jnp.zeros(())}) == [
        "scale: float32[] (weak type) → float32[]"
    ]


def test_few_changes_stand_for_many():
    lines: list[str] = []

    def add(tree):
        return sum(tree.values())

    added = jax.jit(add)
    old, new = ({name: jnp.zeros(size) for name in "abcde"} for size in (2, 3))
    with report_compilations("add", old, lambda: new, lines.append):
        added(new)
    assert lines[0].endswith(
        "s: a: float32[2] → float32[3]; b: float32[2] → float32[3]; c: float32[2] → float32[3]; and 2 more"
    )


def test_what_is_compiled_ahead_is_not_compiled_at_the_first_call():
    lines: list[str] = []
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])

    def halve(x):
        return x / 2

    halved = jax.jit(halve, donate_argnums=0)
    compile_ahead(halved, jax.ShapeDtypeStruct((3,), jnp.float32, sharding=place))
    with report_compilations("halve", [], list, lines.append):
        for _ in range(2):
            assert halved(jax.device_put(jnp.ones(3), place)).tolist() == [0.5, 0.5, 0.5]
        assert lines == []
