"""What every search returns, and what all of them need.

B sentence · K beam · N hypothesis · T target position · S source position
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import BOS, PAD

Tree = TypeVar("Tree")  # an array, or a tuple of them


class Hypotheses(NamedTuple):
    """The N translations of each sentence: tokens, then PAD.

    A translation that ended has EOS as its last token, counted in ``lengths``. One that met its length limit first
    has no EOS and stands whole. Where there is no hypothesis, as for a row without a source, the length is 0.
    """

    tokens: Int[Array, "B N T"]
    lengths: Int[Array, "B N"]
    log_probs: Float[Array, "B N"]
    scores: Float[Array, "B N"]
    ended: Bool[Array, "B N"]


def limits_of_sources(limits: Int[Array, " B"], source_segments: Int[Array, "B S"]) -> Int[Array, " B"]:
    """No tokens for rows without a source: they are done before the first step and hold nobody up."""
    return jnp.where((source_segments != 0).any(axis=1), limits, 0)


def no_hypotheses(batch: int, count: int, max_length: int) -> Hypotheses:
    """``count`` places per sentence with nothing in them."""
    shape = (batch, count)
    tokens, lengths = jnp.full((*shape, max_length), PAD, jnp.int32), jnp.zeros(shape, jnp.int32)
    return Hypotheses(tokens, lengths, jnp.full(shape, -jnp.inf), jnp.full(shape, -jnp.inf), jnp.zeros(shape, bool))


def last_tokens(tokens: Int[Array, "B K T"], position: Int[Array, ""]) -> Int[Array, "B K"]:
    """What the decoder reads at a position: the token before it, or BOS."""
    return jnp.where(position == 0, BOS, tokens[:, :, position - 1])


def forced_at(prefixes: Int[Array, "B T"] | None, position: Int[Array, ""]) -> Int[Array, " B"] | None:
    """The token that each sentence's prefix has at a position; PAD beyond its end."""
    return None if prefixes is None else prefixes[:, position]


def pick(values: Tree, places: Int[Array, "B C"]) -> Tree:
    """Each sentence's own choice among its rows, in every array."""
    picked: Tree = jax.tree.map(lambda rows: jax.vmap(jnp.take, in_axes=(0, 0, None))(rows, places, 0), values)
    return picked


def choose(which: Bool[Array, "B *C"], new: Tree, old: Tree) -> Tree:
    """The new rows where ``which`` says so, in every array."""

    def where(new: Array, old: Array) -> Array:
        return jnp.where(which.reshape(*which.shape, *[1] * (new.ndim - which.ndim)), new, old)

    chosen: Tree = jax.tree.map(where, new, old)
    return chosen
