"""Padding to the lengths that a kernel needs."""

import jax.numpy as jnp
from jaxtyping import Array


def padded(array: Array, axis: int, multiple: int) -> Array:
    """The array, zero-padded along ``axis`` to the next multiple; in segments, zero is padding."""
    missing = -array.shape[axis] % multiple
    return jnp.pad(array, [(0, missing if index == axis else 0) for index in range(array.ndim)])
