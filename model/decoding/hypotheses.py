"""What every search takes and returns, and the helpers that all searches share."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import PAD
from model.decoding.next_token import Forced
from model.transformer import Tokens

Tree = TypeVar("Tree")  # an array, or a tuple of them


class Sources(NamedTuple):
    """Sentences to translate, and what their translations are limited to.

    A translation has at most ``limits`` tokens, EOS included, and begins with the tokens of ``prefixes``, then PAD.
    """

    tokens: Tokens
    limits: Int[Array, " B"]
    prefixes: Int[Array, "B T"] | None = None

    def row_limits(self) -> Int[Array, " B"]:
        """The limits, with zero for rows without a source: they are done at once and delay no other row."""
        return jnp.where((self.tokens.segments != 0).any(axis=1), self.limits, 0)

    def forced_tokens(self, position: Int[Array, ""]) -> Forced:
        """The tokens of the prefixes at a position; PAD where there is none."""
        return None if self.prefixes is None else self.prefixes[:, position]


class Hypotheses(NamedTuple):
    """The J translations of each sentence: tokens, then PAD.

    A translation that ended has EOS as its last token, counted in ``lengths``. One that reached its length limit has no
    EOS. Where there is no hypothesis, as in a row without a source, the length is 0.
    """

    tokens: Int[Array, "B J T"]
    lengths: Int[Array, "B J"]
    log_probs: Float[Array, "B J"]
    scores: Float[Array, "B J"]
    ended: Bool[Array, "B J"]


def no_hypotheses(batch: int, count: int, max_length: int) -> Hypotheses:
    """``count`` empty hypotheses per sentence."""
    shape = (batch, count)
    tokens, lengths = jnp.full((*shape, max_length), PAD, jnp.int32), jnp.zeros(shape, jnp.int32)
    return Hypotheses(tokens, lengths, jnp.full(shape, -jnp.inf), jnp.full(shape, -jnp.inf), jnp.zeros(shape, bool))


def gather(values: Tree, places: Int[Array, "B C"]) -> Tree:
    """From every array, the rows of each sentence at its ``places``."""
    return jax.tree.map(lambda rows: jax.vmap(jnp.take, in_axes=(0, 0, None))(rows, places, 0), values)


def select(condition: Bool[Array, "B *C"], new: Tree, old: Tree) -> Tree:
    """In every array, the new rows where the condition holds, and the old ones elsewhere."""

    def where(new: Array, old: Array) -> Array:
        return jnp.where(condition.reshape(*condition.shape, *[1] * (new.ndim - condition.ndim)), new, old)

    return jax.tree.map(where, new, old)
