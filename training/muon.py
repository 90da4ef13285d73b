"""Muon (Jordan et al. 2024): momentum with orthogonalized updates of matrices, by the iterations of Amsel et al. 2025.

With all singular values about 1, an update moves every direction of a matrix equally, even those that are rare in
gradients. optax has Muon too, but its products are batched and transposed, which is slow on a CPU.
"""

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attention.kernels.request import current_device
from model.matmul import transposed
from model.sharding import replicate

# (a, b, c) of each iteration, the best polynomials for singular values from 0.01 to 1 (Amsel et al. 2025, with a safety
# factor of 1.01). The usual Newton–Schulz iterations take longer and give no better translations: docs/quality.md.
COEFFICIENTS = (8.0132, -22.9258, 16.5994), (3.6070, -2.6486, 0.5119), (2.6536, -1.9392, 0.4350)
MOMENTUM = 0.95
ADAM_RMS = 0.2  # about the root mean square of Adam's updates (Liu et al. 2025, section 2.2)


def scale_by_muon() -> optax.GradientTransformation:
    """Updates of matrices: Nesterov momentum, orthogonalized and scaled to the size of Adam's updates."""

    def orthogonal(updates: PyTree, _: PyTree) -> PyTree:
        whole = jax.tree.map(replicate, updates)  # once; otherwise a mesh would gather the matrix for every product
        found = orthogonalize_all(whole)
        return jax.tree.map(lambda matrix: ADAM_RMS * max(matrix.shape) ** 0.5 * replicate(matrix), found)

    return optax.chain(optax.trace(MOMENTUM, nesterov=True), optax.stateless(orthogonal))


def orthogonalize_all(matrices: PyTree) -> PyTree:
    """``orthogonalize`` every matrix: one after the other on a CPU, otherwise all of the same shape at once.

    Batching makes a step of tatoeba-base 1.2 times as fast on an H200 (docs/benchmarks.md), but slower on a CPU.
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
    """Approximately U Vᵀ of the singular value decomposition U S Vᵀ.

    Singular values above a hundredth of the matrix's norm end up between 0.71 and 1.28, smaller ones below that. Runs
    iterations of Polar Express (Amsel et al. 2025), x ← a x + b (x xᵀ) x + c (x xᵀ)² x, on the matrix or its
    transpose, whichever is wide, in bfloat16. Rounding changes the result by about 2 %, and by up to 20 % at rank 1,
    where the first polynomial is steep.
    """
    if matrix.shape[0] > matrix.shape[1]:
        return transposed(orthogonalize(transposed(matrix)))
    x = (matrix / (jnp.linalg.norm(matrix) + 1e-8)).astype(jnp.bfloat16)
    for a, b, c in COEFFICIENTS:
        squared = _product(x, x, 1)
        factor = b * squared + c * _product(squared, squared, 0)
        x = (a * x + _product(factor, x, 0)).astype(jnp.bfloat16)
    return x.astype(matrix.dtype)


def _product(left: Array, right: Array, axis: int) -> Array:
    """A product of bfloat16 operands with float32 sums; ``axis`` of ``right`` is summed over."""
    operands = left.astype(jnp.bfloat16), right.astype(jnp.bfloat16)
    return jax.lax.dot_general(*operands, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32)
