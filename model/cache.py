"""What decoding stores between steps. Caches are passed in and returned; no module holds one.

At position t, hypothesis k of a sentence writes its keys and values to place t K + k, and they stay there: a search
never copies them. When hypotheses branch, only ``ancestors`` changes. The axis of places is called TK.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention.masks import Mask
from model.layers import KeysValues

HIDDEN = -1e9  # added to a score; finite like every bias, but beside a visible key its exponential is exactly 0


class LayerCache(NamedTuple):
    """Keys and values in one decoder layer: either of the tokens so far, in TK places, or of the source.

    Keys have their width before their places: a product that sums over the last axis of both operands takes four times
    as long on a CPU.
    """

    keys: Float[Array, "B G H S"]
    values: Float[Array, "B G S U"]

    @property
    def memory(self) -> KeysValues:
        """The keys and values of every place, written or not."""
        return KeysValues(self.keys.swapaxes(2, 3), self.values)

    def write(self, tokens: KeysValues, positions: Int[Array, " B"]) -> "LayerCache":
        """The cache with the keys and values of the K tokens at their sentence's position written to their places."""
        update = jax.vmap(jax.lax.dynamic_update_slice_in_dim, in_axes=(0, 0, 0, None))
        places = positions * tokens.key.shape[2]
        keys = update(self.keys, tokens.key.swapaxes(2, 3), places, 2)
        return LayerCache(keys, update(self.values, tokens.value, places, 1))


class EncodedSource(NamedTuple):
    """The keys and values of source sentences in every decoder layer, shared by all hypotheses of a sentence."""

    layers: tuple[LayerCache, ...]
    segments: Int[Array, "B S"]


class Cache(NamedTuple):
    """The keys and values of the tokens so far and of the source, and which places each hypothesis descends from."""

    past: tuple[LayerCache, ...]
    source: EncodedSource
    ancestors: Int[Array, "B K T"]  # the hypothesis that wrote each position of a hypothesis's past

    @classmethod
    def empty(cls, source: EncodedSource, beams: int, max_length: int) -> "Cache":
        """An empty cache with room for ``beams`` hypotheses of ``max_length`` tokens per source."""

        def past(source: LayerCache) -> LayerCache:
            (batch, groups, _, width), dtype = source.values.shape, source.keys.dtype
            keys = jnp.zeros((batch, groups, source.keys.shape[2], max_length * beams), dtype)
            return LayerCache(keys, jnp.zeros((batch, groups, max_length * beams, width), dtype))

        return cls(tuple(map(past, source.layers)), source, own_places(len(source.segments), beams, max_length))

    def positions(self) -> Int[Array, "B TK"]:
        """The position of the token in each place."""
        batch, beams, max_length = self.ancestors.shape
        return jnp.broadcast_to(jnp.arange(max_length * beams) // beams, (batch, max_length * beams))

    def masks(self, positions: Int[Array, " B"]) -> tuple[Mask, Mask]:
        """Masks over the past (up to and including the tokens at each sentence's position) and over the source."""
        queries = jnp.ones(self.ancestors.shape[:2], jnp.int32)
        is_written = self.positions() <= positions[:, None]
        return Mask(queries, is_written.astype(jnp.int32)), Mask(queries, self.source.segments)


def own_places(batch: int, beams: int, max_length: int) -> Int[Array, "B K T"]:
    """The ancestors of hypotheses that never branched: each wrote all of its tokens itself."""
    return jnp.broadcast_to(jnp.arange(beams)[:, None], (batch, beams, max_length))


def branch(cache: Cache, parents: Int[Array, "B K"], positions: Int[Array, " B"]) -> Cache:
    """Give each hypothesis its parent's past, up to the token at its sentence's position."""
    inherited = jnp.take_along_axis(cache.ancestors, parents[:, :, None], axis=1)
    past = jnp.arange(inherited.shape[2]) <= positions[:, None, None]
    return cache._replace(ancestors=jnp.where(past, inherited, own_places(*inherited.shape)))


def lineage_bias(ancestors: Int[Array, "B K T"], heads: int) -> Float[Array, "B N K TK"]:
    """A bias, the same for every head, that hides from each hypothesis the keys outside its own past."""
    batch, beams, room = ancestors.shape
    hidden = jnp.where(ancestors[..., None] == jnp.arange(beams), 0.0, HIDDEN)
    return jnp.broadcast_to(hidden.reshape(batch, 1, beams, room * beams), (batch, heads, beams, room * beams))
