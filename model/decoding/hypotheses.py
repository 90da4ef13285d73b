"""What every search takes and returns, and the helpers shared by all searches."""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from common.special_tokens import PAD
from model.decoding.next_token import Spelling, SpellingTable
from model.transformer import Tokens

Tree = TypeVar("Tree")  # an array, or a tuple of them


class Sources(NamedTuple):
    """Sentences to translate, and the constraints on their translations.

    A translation has at most ``limits`` tokens, including EOS, and begins with the text that ``spelling`` prescribes.
    """

    tokens: Tokens
    limits: Int[Array, " B"]
    numbers: UInt32[Array, " B"] | None = None  # of the sentences, to seed random draws
    starts: Int[Array, " B"] | None = None  # the states of ``spelling`` in which translations begin
    spelling: SpellingTable | None = None

    def row_limits(self) -> Int[Array, " B"]:
        """The limits, with zero for rows without a source: they are done at once and do not delay other rows."""
        return jnp.where((self.tokens.segments != 0).any(axis=1), self.limits, 0)

    def of(self, sentences: Int[Array, " B"]) -> "Sources":
        """The sentences with these numbers; an empty one if a number is beyond the last."""
        return rows_of(self._replace(spelling=None), sentences)._replace(spelling=self.spelling)

    def start_spelling(self, beams: int) -> Int[Array, "B K"] | None:
        """The initial spelling states of each sentence's hypotheses."""
        return None if self.starts is None else jnp.broadcast_to(self.starts[:, None], (len(self.starts), beams))

    def spelled(self, states: Int[Array, "B K"] | None) -> Spelling | None:
        return None if self.spelling is None or states is None else Spelling(jnp.asarray(self.spelling), states)


class Hypotheses(NamedTuple):
    """The J translations of each sentence: tokens, then PAD.

    A translation that ended has EOS as its last token, and ``lengths`` includes it. One that reached its length limit
    has no EOS. If there is no hypothesis, as in a row without a source, the length is 0.
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
    """From every array, take the rows of each sentence at its ``places``."""
    return jax.tree.map(lambda rows: jax.vmap(jnp.take, in_axes=(0, 0, None))(rows, places, 0), values)


def rows_of(values: Tree, rows: Int[Array, " B"]) -> Tree:
    """From every array, take these rows; zeros if a number is beyond the last row."""
    return jax.tree.map(lambda array: jnp.asarray(array).at[rows].get(mode="fill", fill_value=0), values)


def select(condition: Bool[Array, "B *C"], new: Tree, old: Tree) -> Tree:
    """In every array, the new rows where the condition holds, and the old ones elsewhere."""

    def where(new: Array, old: Array) -> Array:
        return jnp.where(condition.reshape(*condition.shape, *[1] * (new.ndim - condition.ndim)), new, old)

    return jax.tree.map(where, new, old)
