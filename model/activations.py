"""The activations of the feed-forward layers, by the names that the config gives them."""

import jax

ACTIVATIONS = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu}
