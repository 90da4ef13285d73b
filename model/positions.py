"""Sinusoidal positions (Vaswani et al. 2017, section 3.5)."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def sinusoidal_positions(positions: Int[Array, "B T"], d_model: int) -> Float[Array, "B T D"]:
    """Sines in the first half of the width, cosines in the second; wavelengths from 2π to 20000π.

    The paper interleaves the two; halves are the same features in another order, which the next layer's
    weights absorb. Any position has its code: there is no table to run out of.
    """
    frequencies = jnp.exp(jnp.arange(d_model // 2) * (-math.log(10_000.0) / (d_model // 2)))
    angles = positions[..., None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)
