"""What decoding stores between steps. Caches are passed in and returned; no module holds one.

At position t, hypothesis k of a sentence writes its keys and values to place t K + k, where they stay: a search never
copies them. When hypotheses branch, only ``ancestors`` changes. The axis of places is called TK.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention import Mask
from model.layers import KeysValues

HIDDEN = -1e9  # added to a score; finite as every bias, and next to a visible key its exponential is exactly 0


class LayerCache(NamedTuple):
    """The keys and values of one decoder layer: those of the tokens so far, and those of the source.

    The source's are computed once and shared by all hypotheses of a sentence. The width of keys comes before their
    places: a product that sums over the last axis of both operands takes four times as long on a CPU.
    """

    self_keys: Float[Array, "B G H TK"]
    self_values: Float[Array, "B G TK U"]
    cross_keys: Float[Array, "B G H S"]
    cross_values: Float[Array, "B G S U"]

    @classmethod
    def empty(cls, source: KeysValues, places: int) -> "LayerCache":
        """Zeros in every place, and the keys and values of the source."""
        (key, value), (batch, groups) = source, source.key.shape[:2]
        keys = jnp.zeros((batch, groups, key.shape[3], places), key.dtype)
        values = jnp.zeros((batch, groups, places, value.shape[3]), value.dtype)
        return cls(keys, values, key.swapaxes(2, 3), value)

    @property
    def past(self) -> KeysValues:
        """The keys and values of every place, written or not."""
        return KeysValues(self.self_keys.swapaxes(2, 3), self.self_values)

    @property
    def source(self) -> KeysValues:
        """The keys and values of the source."""
        return KeysValues(self.cross_keys.swapaxes(2, 3), self.cross_values)

    def write(self, tokens: KeysValues, position: Int[Array, ""] | int) -> "LayerCache":
        """The cache with the keys and values of the K tokens at ``position`` in their places."""
        place = position * tokens.key.shape[2]
        update = jax.lax.dynamic_update_slice_in_dim
        return self._replace(
            self_keys=update(self.self_keys, tokens.key.swapaxes(2, 3), place, axis=3),
            self_values=update(self.self_values, tokens.value, place, axis=2),
        )


class Cache(NamedTuple):
    """The caches of all layers, and which places each hypothesis descends from."""

    layers: tuple[LayerCache, ...]
    source_segments: Int[Array, "B S"]
    ancestors: Int[Array, "B K T"]  # the hypothesis that wrote each position of a hypothesis's past

    def positions(self) -> Int[Array, "B TK"]:
        """The position of the token in each place."""
        batch, beams, max_length = self.ancestors.shape
        return jnp.broadcast_to(jnp.arange(max_length * beams) // beams, (batch, max_length * beams))

    def masks(self, position: Int[Array, ""]) -> tuple[Mask, Mask]:
        """What the tokens at ``position`` see of the past, up to themselves, and of the source."""
        batch, beams, max_length = self.ancestors.shape
        queries = jnp.ones((batch, beams), jnp.int32)
        is_written = jnp.arange(max_length * beams) < (position + 1) * beams
        places = jnp.broadcast_to(is_written.astype(jnp.int32), (batch, is_written.size))
        return Mask(queries, places), Mask(queries, self.source_segments)


def own_places(batch: int, beams: int, max_length: int) -> Int[Array, "B K T"]:
    """The ancestors of hypotheses that never branched: every token is their own."""
    return jnp.broadcast_to(jnp.arange(beams)[:, None], (batch, beams, max_length))


def branch(cache: Cache, parents: Int[Array, "B K"], position: Int[Array, ""]) -> Cache:
    """Give each hypothesis the past of its parent, up to the token at ``position``."""
    inherited = jnp.take_along_axis(cache.ancestors, parents[:, :, None], axis=1)
    past = jnp.arange(inherited.shape[2]) <= position
    return cache._replace(ancestors=jnp.where(past, inherited, own_places(*inherited.shape)))


def lineage_bias(ancestors: Int[Array, "B K T"], heads: int) -> Float[Array, "B N K TK"]:
    """A bias, the same for every head, that hides from each hypothesis the keys outside its own past."""
    batch, beams, room = ancestors.shape
    hidden = jnp.where(ancestors[..., None] == jnp.arange(beams), 0.0, HIDDEN)
    return jnp.broadcast_to(hidden.reshape(batch, 1, beams, room * beams), (batch, heads, beams, room * beams))
