"""What is compiled ahead takes what it is compiled for; what is made in the background is there when asked for."""

import re
import threading

import jax
import jax.numpy as jnp
import pytest

from data.batches.packing import Batch
from training.devices.compilation import compile_ahead, in_background
from training.state import Skipped, TrainState, zero_sums
from training.step import StepReport

STATE = TrainState(jnp.int32(7), {}, (), None, zero_sums(), Skipped(*(jnp.zeros((), jnp.int32) for _ in range(3))))


def make_batch(rows, dtype=jnp.int32):
    return Batch(*(jnp.ones((rows, 2), dtype) for _ in Batch._fields))


def train_step(state, batch):
    return state, StepReport(batch.source_tokens.sum(), jnp.ones(()), jnp.int32(0))


@pytest.mark.parametrize(("rows", "dtype"), [(4, "int32"), (6, "int8")])
def test_what_is_compiled_ahead_refuses_other_arguments_by_name(rows, dtype):
    step = compile_ahead(jax.jit(train_step), STATE, make_batch(6))
    assert int(step(STATE, make_batch(6))[1].loss) == 12
    told = f"'batch.source_tokens' compiled with int32[6,2] and called with {dtype}[{rows},2]"
    with pytest.raises(TypeError, match=re.escape(told)):
        step(STATE, make_batch(rows, dtype))


def test_a_step_of_several_programs_stays_as_it_is():
    assert compile_ahead(train_step, STATE, make_batch(6)) is train_step


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
