"""The matrix product of every layer, with hand-written gradients because autodiff's are slower in XLA on a CPU."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.kernels.request import current_device
from model.sharding import on_one_device


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def matmul(
    x: Float[Array, "*rows D"], kernel: Float[Array, "_ _"], dtype: str, contract: int = 0
) -> Float[Array, "*rows F"]:
    """``x`` times a matrix whose axis ``contract`` is D, with operands in ``dtype``; sums and result are float32.

    For the gradients, autodiff would multiply in float32 and, on a CPU, contract the kernel's gradient over two axes at
    once; XLA runs these 1.6 and 1.3 times slower there than flat products. It also runs a product with a transposed
    matrix up to 1.8 times slower than one over the matrix's other axis.
    """
    product = _dot(_rows(x, dtype), kernel.astype(dtype), [-1], [contract])
    return product.reshape(*x.shape[:-1], -1)


def _forward(x: Array, kernel: Array, dtype: str, contract: int) -> tuple[Array, tuple[Array, Array]]:
    return matmul(x, kernel, dtype, contract), (x, kernel)


def _backward(dtype: str, contract: int, saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    inputs, rows = _rows(x, dtype), _rows(gradient, dtype)
    x_gradient = _dot(rows, kernel.astype(dtype), [-1], [1 - contract]).astype(x.dtype).reshape(x.shape)
    left, right = (inputs, rows) if contract == 0 else (rows, inputs)
    return x_gradient, _over_rows(left, right).astype(kernel.dtype)


matmul.defvjp(_forward, _backward)


def _over_rows(left: Float[Array, "*rows D"], right: Float[Array, "*rows F"]) -> Float[Array, "D F"]:
    """The kernel's gradient, a sum over all rows. On a CPU, the narrower side is transposed first."""
    if current_device().platform == "cpu" and left.dtype == jnp.bfloat16 and on_one_device():
        if left.shape[1] <= right.shape[1]:
            return _dot(transposed(left), right, [1], [0])
        return transposed(jax.lax.optimization_barrier(_dot(transposed(right), left, [1], [0])))
    all_rows = range(left.ndim - 1)
    return _dot(left, right, all_rows, all_rows)


def transposed(x: Float[Array, "rows columns"]) -> Float[Array, "columns rows"]:
    """The transpose as an array: otherwise XLA would fuse it into the product on a CPU and multiply in float32."""
    return jax.lax.optimization_barrier(x.T.reshape(-1)).reshape(x.shape[::-1])


def _rows(x: Float[Array, "*rows D"], dtype: str) -> Float[Array, "*flat D"]:
    """``x`` in ``dtype``; on a CPU, rows are flattened. On a TPU, the compiler would have to copy flattened heads."""
    rows = x.reshape(-1, x.shape[-1]) if current_device().platform == "cpu" else x
    return rows.astype(dtype)


def _dot(left: Array, right: Array, left_axes: Sequence[int], right_axes: Sequence[int]) -> Array:
    axes = [axis % left.ndim for axis in left_axes], [axis % right.ndim for axis in right_axes]
    return jax.lax.dot_general(left, right, (axes, ((), ())), preferred_element_type=jnp.float32)
