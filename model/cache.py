"""What decoding remembers between steps. Caches go in and come out; nothing is stored in a module."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Cache(NamedTuple):
    """Keys and values of every decoder layer, first axis L.

    Self-attention has a set per beam, filled up to the current position. Encoder-decoder attention has one per
    sentence, computed once from the encoder's output and shared by its beams.
    """

    self_keys: tuple[Float[Array, "B K G T H"], ...]
    self_values: tuple[Float[Array, "B K G T U"], ...]
    cross_keys: tuple[Float[Array, "B G S H"], ...]
    cross_values: tuple[Float[Array, "B G S U"], ...]
    source_segments: Int[Array, "B S"]


def write(
    cached: Float[Array, "B K G T H"], new: Float[Array, "BK G 1 H"], position: Int[Array, ""]
) -> Float[Array, "B K G T H"]:
    """The cached keys or values with those of the token at ``position`` written into their place."""
    batch, beams, heads, _, width = cached.shape
    new = new.reshape(batch, beams, heads, 1, width)
    return jax.lax.dynamic_update_slice_in_dim(cached, new, position, axis=3)


def reorder(cache: Cache, parents: Int[Array, "B K"]) -> Cache:
    """Give each beam the past of the beam that it extends."""

    def gather(cached: Float[Array, "B K G T H"]) -> Float[Array, "B K G T H"]:
        return jnp.take_along_axis(cached, parents[:, :, None, None, None], axis=1)

    return cache._replace(
        self_keys=tuple(map(gather, cache.self_keys)), self_values=tuple(map(gather, cache.self_values))
    )
