"""Turns, processes, and what is said of those who cannot take part."""

import time
from functools import partial
from itertools import groupby

import numpy as np
import pytest

from benchmarks.turns import Contestant, Entrant, describe_failure, enter, matrix_products, measure, take_turns
from common.errors import UserError
from tests.benchmarks.small import RUNS_ON_CPU, measured, refused, results


def test_contestants_take_turns():
    turns: list[str] = []
    entrant = enter({name: partial(turns.append, name) for name in "ab"})
    times = take_turns(entrant.timers, rounds=3)
    assert set(times) == {"a", "b"} and all(0 < time < 20 for time in times.values())
    # The first call of each, one to count repetitions, and three rounds.
    assert "".join(name for name, _ in groupby(turns)) == "ab" * 5


def prepare(contestant: Contestant[str]) -> Entrant:
    """At the top of a module: another process imports it."""
    if contestant.name == "broken":
        raise ValueError("no\nmore")
    return enter({contestant.workload: tuple}, lambda: contestant.name.upper())


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_a_contestant_that_fails_leaves_the_others_their_turns(apart, capsys):
    groups = [[Contestant("a", "x"), Contestant("broken", "x")]] if apart else [[Contestant("broken", "y")]]
    found = measure(groups, prepare, partial(enter, {"jax": tuple}), 1, apart=apart)
    by_name = {each.contestant.name: each for each in found.measurements}
    assert by_name["broken"].obstacle == "fails: no" and by_name["broken"].milliseconds == {}
    assert found.rates["jax"] > 0 and found.notes() == ["broken: fails: no"]
    if apart:
        assert by_name["a"].facts == "A" and by_name["a"].milliseconds["x"] > 0 and by_name["a"].obstacle is None
    assert capsys.readouterr().err.startswith("measuring ")


def test_a_group_that_would_begin_after_the_deadline_is_left_out(capsys):
    prepared: list[str] = []

    def wait(contestant: Contestant[str]) -> Entrant:
        prepared.append(contestant.name)
        time.sleep(0.1)
        return enter({"x": tuple})

    groups = [[Contestant("first", "x")], [Contestant("second", "x"), Contestant("third", "y")]]
    found = measure(groups, wait, partial(enter, {"jax": tuple}), 1, apart=False, deadline=time.monotonic() + 0.05)
    assert prepared == ["first"] and "second" not in capsys.readouterr().err
    assert found.notes() == ["second: left out: the time was up", "third: left out: the time was up"]
    assert [bool(each.milliseconds) for each in found.measurements] == [True, False, False]


def test_a_failure_is_one_line():
    failures = {
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nmore"): "out of memory",
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"): "out of memory",
        UserError("model.kernel=tpu: needs a TPU"): "model.kernel=tpu: needs a TPU",
    }
    assert {error: describe_failure(error) for error in failures} == failures


def test_notes_name_the_workloads_only_where_others_could_be_measured():
    always = [refused("tpu", workload, "needs a TPU") for workload in "xyz"]
    sometimes = [measured("big", "x", {"call": 1.0}), *(refused("big", workload, "out of memory") for workload in "yz")]
    assert results(*always, *sometimes).notes() == ["tpu: needs a TPU", "big on y, z: out of memory"]


@RUNS_ON_CPU
def test_products_of_bfloat16_operands_have_wide_results():
    products = matrix_products(with_bfloat16=True)
    assert {"jax", "jax bfloat16"} <= set(products) and len(products) in (2, 4)
    results = {name: np.asarray(product()) for name, product in products.items() if name.startswith("jax")}
    for result in results.values():
        assert result.ndim == 2 and result.dtype == "float32"
