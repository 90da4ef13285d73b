"""Turns and memory."""

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from benchmarks.turns import matrix_products, milliseconds_in_turns, rise_of_peak_memory


def test_contestants_take_turns():
    taken: list[str] = []
    times = milliseconds_in_turns({name: partial(taken.append, name) for name in "ab"}, rounds=3)
    assert set(times) == {"a", "b"} and all(0 < time < 20 for time in times.values())
    turns = [name for name, before in zip(taken, ["", *taken], strict=False) if name != before]
    assert turns == list("ab" * 5)  # the first run of each, one to count repetitions, and three rounds


@pytest.mark.skipif(sys.platform != "linux", reason="measured on Linux only")
def test_the_rise_is_that_of_the_call_alone():
    def mebibytes(prepare: Any) -> float:
        return (rise_of_peak_memory(prepare) or 0) / 2**20

    big = np.ones(2**25)  # 256 MiB here, which the other process must not count
    assert 64 <= mebibytes(partial(partial, np.ones, 2**23)) < 66
    assert mebibytes(partial(partial, np.ones, 1)) < 1
    assert big.sum() == 2**25


def test_matrix_products_are_products():
    for product in matrix_products().values():
        assert np.asarray(product()).shape == (1024, 1024)
