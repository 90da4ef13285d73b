"""The activations of the feed-forward layers, by their names in the config."""

import jax

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "relu_squared": lambda x: jax.nn.relu(x) ** 2,  # of Primer (So et al. 2021)
}
