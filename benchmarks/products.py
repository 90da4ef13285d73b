"""The rate that a machine reaches in plain products of matrices."""

from functools import partial
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.machine import Call


def matrix_size() -> tuple[int, str]:
    """Return the rows and the dtype of square matrices whose product shows what the machine can do at best."""
    return (1024, "float32") if jax.default_backend() == "cpu" else (8192, "bfloat16")


def matrix_products(*, with_bfloat16: bool = False) -> dict[str, Call]:
    """Return the product of two such matrices by JAX, and by PyTorch on a CPU that has it.

    ``with_bfloat16`` adds bfloat16 operands where the usual ones are wider: JAX then returns float32, as a model with
    ``matmul_dtype=bfloat16`` does, and PyTorch bfloat16, as its autocast does.
    """
    size, dtype = matrix_size()
    values = np.random.default_rng(0).standard_normal((size, size), np.float32)
    products: dict[str, Call] = {}
    for operands in {dtype: None, "bfloat16": None} if with_bfloat16 else [dtype]:
        matrix, suffix = jnp.asarray(values, operands), "" if operands == dtype else f" {operands}"
        product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32 if suffix else None))
        products[f"jax{suffix}"] = partial(product, matrix, matrix)
        if find_spec("torch") and dtype == "float32":
            from benchmarks.peers.pytorch import matrix_product  # PyTorch need not be there

            products[f"torch{suffix}"] = matrix_product(values, operands)
    return products
