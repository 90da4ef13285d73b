"""Lengths that a kernel wants."""

import jax.numpy as jnp
from jaxtyping import Array


def padded(array: Array, axis: int, multiple: int) -> Array:
    """With zeros, and so with segment 0, up to a length that is a multiple."""
    missing = -array.shape[axis] % multiple
    return jnp.pad(array, [(0, missing if index == axis else 0) for index in range(array.ndim)])
