"""What is compiled ahead, or made in the background, is there when it is asked for; another compilation is reported."""

import re
import threading

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from data.batches.packing import Batch
from training.devices.compilation import compile_ahead, in_background, list_changes, report_compilations
from training.state import Skipped, TrainState, zero_sums
from training.step import StepArguments, StepReport

PLACE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
STATE = TrainState(jnp.int32(7), {}, (), None, zero_sums(), Skipped(*(jnp.zeros((), jnp.int32) for _ in range(3))))


def shapes(rows):
    batch = Batch(*(jax.ShapeDtypeStruct((rows, 2), jnp.int32, sharding=PLACE) for _ in Batch._fields))
    return StepArguments(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((), leaf.dtype, sharding=PLACE), STATE), batch)


def make_batch(rows):
    return Batch(*(jnp.ones((rows, 2), jnp.int32) for _ in Batch._fields))


def train_step(state, batch):
    return state, StepReport(batch.source_tokens.sum(), jnp.ones(()), jnp.int32(0))


def test_compilations_are_reported_with_what_changed_and_calls_and_other_functions_are_not():
    lines: list[str] = []
    compiled, other = jax.jit(train_step), jax.jit(lambda state, batch: batch.source_tokens.sum())
    compiled(STATE, make_batch(3))
    with report_compilations(compiled, shapes(3), lines.append) as step:
        step(STATE, make_batch(3))
        other(STATE, make_batch(4))
        assert lines == []
        step(STATE, make_batch(4))
        changes = "; ".join(f"batch.{name}: int32[3, 2] → int32[4, 2]" for name in Batch._fields[:3])
        assert len(lines) == 1
        assert re.fullmatch(
            rf"step 8: train_step was compiled again in [\d.]+ s: {re.escape(changes)}; and 4 more", lines[0]
        )
    compiled(STATE, make_batch(5))
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
    assert list_changes(old, tree(4, jnp.int32, by_rows, averaged=1.0)) == [
        "averaged: nothing → float32[] (weak type)",
        "averaged: nothing → not on a device",
    ]
    assert list_changes({"scale": jnp.asarray(1.0)}, {"scale": jnp.float32(1) + jnp.zeros(())}) == [
        "scale: float32[] (weak type) → float32[]"
    ]


def test_what_is_compiled_ahead_is_not_compiled_at_the_first_call():
    lines: list[str] = []
    compiled = jax.jit(train_step, donate_argnums=0)
    compile_ahead(compiled, *shapes(6))
    with report_compilations(compiled, shapes(6), lines.append) as step:
        state = STATE
        for _ in range(2):
            state, report = step(jax.device_put(state, PLACE), jax.device_put(make_batch(6), PLACE))
            assert int(report.loss) == 12
        assert lines == []


def test_it_is_made_beside_what_follows():
    told = threading.Event()
    result = in_background(told.wait, 60)
    told.set()  # never reached if it were made at once
    assert result.result() is True


def test_an_exception_is_raised_where_the_result_is_asked_for():
    result = in_background(int, "one")
    with pytest.raises(ValueError, match="invalid literal"):
        result.result()


def test_with_several_processes_it_is_made_at_once(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    assert in_background(pow, 2, 3).done()
