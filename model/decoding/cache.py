"""What decoding remembers between steps. Caches go in and come out; nothing is stored in a module.

At position t, hypothesis k of a sentence writes its keys and values into place t K + k, and there they stay: a search
never copies them. When hypotheses branch, only ``ancestors`` change. The axis of places is called TK.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

HIDDEN = -1e9  # added to a score, finite as every bias: beside a key that is seen, its exponential is exactly 0


class Cache(NamedTuple):
    """Keys and values of every decoder layer, first axis L, and which of them each hypothesis descends from.

    Encoder-decoder attention has one set of keys per sentence, computed once from the encoder's output and shared by
    its hypotheses. Keys stand with their width before their places: a product that sums over the last axis of both
    operands takes four times as long on a CPU.
    """

    self_keys: tuple[Float[Array, "B G H TK"], ...]
    self_values: tuple[Float[Array, "B G TK U"], ...]
    cross_keys: tuple[Float[Array, "B G H S"], ...]
    cross_values: tuple[Float[Array, "B G S U"], ...]
    source_segments: Int[Array, "B S"]
    ancestors: Int[Array, "B K T"]  # whose key at each position is a hypothesis's own past


def write(
    cache: Cache, layer: int, key: Float[Array, "B G K H"], value: Float[Array, "B G K U"], position: Int[Array, ""]
) -> Cache:
    """The cache with a layer's keys and values of the tokens at ``position`` in their places."""
    place = position * key.shape[2]
    keys, values = list(cache.self_keys), list(cache.self_values)
    keys[layer] = jax.lax.dynamic_update_slice_in_dim(keys[layer], key.swapaxes(2, 3), place, axis=3)
    values[layer] = jax.lax.dynamic_update_slice_in_dim(values[layer], value, place, axis=2)
    return cache._replace(self_keys=tuple(keys), self_values=tuple(values))


def own_places(batch: int, beams: int, max_length: int) -> Int[Array, "B K T"]:
    """The ancestors of hypotheses that never branched: every token is their own."""
    return jnp.broadcast_to(jnp.arange(beams)[:, None], (batch, beams, max_length))


def branch(cache: Cache, parents: Int[Array, "B K"], position: Int[Array, ""]) -> Cache:
    """Give each hypothesis the past of the one that it extends, up to the token at ``position``."""
    inherited = jnp.take_along_axis(cache.ancestors, parents[:, :, None], axis=1)
    past = jnp.arange(inherited.shape[2]) <= position
    return cache._replace(ancestors=jnp.where(past, inherited, own_places(*inherited.shape)))


def lineage_bias(ancestors: Int[Array, "B K T"], heads: int) -> Float[Array, "B N K TK"]:
    """What hides from each hypothesis the keys that are not its past, the same for every head."""
    batch, beams, room = ancestors.shape
    hidden = jnp.where(ancestors[..., None] == jnp.arange(beams), 0.0, HIDDEN)
    return jnp.broadcast_to(hidden.reshape(batch, 1, beams, room * beams), (batch, heads, beams, room * beams))
