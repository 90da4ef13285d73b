"""Muon (Jordan et al. 2024): momentum whose update of a matrix is made orthogonal.

An update whose singular values are all about 1 moves every direction of a matrix alike, also those that gradients
rarely have. optax has Muon, too; its products are batched and transposed, which are slow on a CPU.
"""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attention.kernels.request import current_device
from model.matmul import transposed
from model.sharding import replicate

COEFFICIENTS = 3.4445, -4.7750, 2.0315
ITERATIONS = 4  # the usual 5 take longer and translate no better: docs/quality.md
MOMENTUM = 0.95
ADAM_RMS = 0.2  # about the root mean square of Adam's updates (Liu et al. 2025, section 2.2)


def scale_by_muon() -> optax.GradientTransformation:
    """Updates of matrices: Nesterov's momentum, made orthogonal and scaled to the size of Adam's updates."""

    def orthogonal(updates: PyTree, _: PyTree) -> PyTree:
        whole = jax.tree.map(replicate, updates)  # once; a mesh would else gather a matrix again for every product
        found = orthogonalize_all(whole)
        return jax.tree.map(lambda matrix: ADAM_RMS * max(matrix.shape) ** 0.5 * replicate(matrix), found)

    return optax.chain(optax.trace(MOMENTUM, nesterov=True), optax.stateless(orthogonal))


def orthogonalize_all(matrices: PyTree) -> PyTree:
    """``orthogonalize`` of every matrix: on a CPU one after the other, elsewhere all of a shape at once.

    That makes a step of tatoeba-base 1.2 times as fast on an H200 (docs/benchmarks.md), and slower on a CPU.
    """
    if current_device().platform == "cpu":
        return jax.tree.map(orthogonalize, matrices)
    leaves, structure = jax.tree.flatten(matrices)
    for shape in dict.fromkeys(leaf.shape for leaf in leaves):
        numbers = [number for number, leaf in enumerate(leaves) if leaf.shape == shape]
        stacked = jax.vmap(orthogonalize)(jnp.stack([leaves[number] for number in numbers]))
        for number, matrix in zip(numbers, stacked, strict=True):
            leaves[number] = matrix
    return jax.tree.unflatten(structure, leaves)


def orthogonalize(matrix: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
    """About U Vᵀ of the singular value decomposition U S Vᵀ.

    Singular values above a hundredth of the matrix's norm come to lie between 0.7 and 1.2, smaller ones below that.
    Newton–Schulz iterations x ← a x + b (x xᵀ) x + c (x xᵀ)² x of the matrix or its transpose, whichever is wide, in
    bfloat16 as in the paper. Its roundings change the result by about 3 %.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return transposed(orthogonalize(transposed(matrix)))
    a, b, c = COEFFICIENTS
    x = (matrix / (jnp.linalg.norm(matrix) + 1e-8)).astype(jnp.bfloat16)
    for _ in range(ITERATIONS):
        squared = _product(x, x, 1)
        factor = b * squared + c * _product(squared, squared, 0)
        x = (a * x + _product(factor, x, 0)).astype(jnp.bfloat16)
    return x.astype(matrix.dtype)


def _product(left: Array, right: Array, axis: int) -> Array:
    """A product of bfloat16 operands that is summed in float32; ``axis`` of ``right`` is summed over."""
    operands = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    return jax.lax.dot_general(*operands, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32)
