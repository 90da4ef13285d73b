"""Memory and matrix products."""

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from benchmarks.machine import matrix_products, matrix_size, measure_peak_rise
from tests.benchmarks.small import RUNS_ON_CPU


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measured on Linux only")
def test_the_rise_is_that_of_the_call_alone():
    def mebibytes(prepare: Any) -> float:
        return (measure_peak_rise(prepare) or 0) / 2**20

    big = np.ones(2**25)  # 256 MiB in this process, which the other one must not count
    assert 64 <= mebibytes(partial(partial, np.ones, 2**23)) < 66
    assert big.sum() == 2**25


@RUNS_ON_CPU
def test_products_of_bfloat16_operands_have_wide_results():
    products = matrix_products(with_bfloat16=True)
    assert {"jax", "jax bfloat16"} <= set(products) and len(products) in (2, 4)
    results = {name: np.asarray(product()) for name, product in products.items() if name.startswith("jax")}
    for result in results.values():
        assert result.shape == (matrix_size()[0],) * 2 and result.dtype == "float32"
