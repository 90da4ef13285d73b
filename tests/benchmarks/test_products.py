"""Matrix products."""

import numpy as np

from benchmarks.products import matrix_products, matrix_size
from tests.benchmarks.small import RUNS_ON_CPU


@RUNS_ON_CPU
def test_products_of_bfloat16_operands_have_wide_results():
    products = matrix_products(with_bfloat16=True)
    assert {"jax", "jax bfloat16"} <= set(products) and len(products) in (2, 4)
    results = {name: np.asarray(product()) for name, product in products.items() if name.startswith("jax")}
    for result in results.values():
        assert result.shape == (matrix_size()[0],) * 2 and result.dtype == "float32"
