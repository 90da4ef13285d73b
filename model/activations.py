"""The activations of the feed-forward layers, by the names that the config gives them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def relu_squared(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """max(x, 0)², the activation of Primer (So et al. 2021, section 3)."""
    return jnp.square(jax.nn.relu(x))


ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "relu_squared": relu_squared}
