"""Which tokens may come next, and how likely they are."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import EOS

SpellingTable = Int[Array | np.ndarray, "states V"]


class Spelling(NamedTuple):
    """How far each hypothesis has spelled the text that it must begin with.

    ``table`` gives the next state for each state and token, or -1 if the token is not allowed. In the last state the
    text is complete, and all tokens but PAD, UNK and BOS are allowed.
    """

    table: SpellingTable
    states: Int[Array, "*B K"]

    def of(self, parents: Int[Array, "B C"]) -> "Spelling":
        return self._replace(states=_take(self.states, parents))

    def after(self, tokens: Int[Array, "*B K"]) -> "Spelling":
        return self._replace(states=self.table[self.states, tokens])


class Candidates(NamedTuple):
    """Continuations of a sentence's hypotheses by one token, most likely first."""

    log_probs: Float[Array, "B C"]  # of hypothesis and token together
    parents: Int[Array, "B C"]  # the hypotheses that are continued
    tokens: Int[Array, "B C"]


def likeliest(
    log_probs: Float[Array, "B K"], logits: Float[Array, "B K V"], spelling: Spelling | None, count: int
) -> Candidates:
    """The ``count`` most likely continuations of hypotheses with these ``log_probs``.

    The best of the K V continuations lie in the tiles of the vocabulary with the highest maxima, so only those tiles
    are sorted: on a CPU, sorting the whole vocabulary, or even its argmax, costs several times as much as the softmax.
    """
    batch, _, vocabulary = logits.shape
    width = tile_width(vocabulary)
    offsets = log_probs - log_normalizers(logits)
    tiles, highest = _tiles(logits, spelling, width)
    bounds = (highest + offsets[..., None]).reshape(batch, -1)

    _, chosen = jax.lax.top_k(bounds, min(count, bounds.shape[1]))
    chosen = jnp.sort(chosen, axis=-1)  # ascending again, so that equal continuations keep the order of their ids
    parents, numbers = jnp.divmod(chosen, highest.shape[2])
    tokens = numbers[..., None] * width + jnp.arange(width)
    scores = jnp.take_along_axis(tiles.reshape(batch, -1, width), chosen[..., None], axis=1)
    may_come = allowed(tokens, spelling and spelling.of(parents))
    scores = jnp.where(may_come, scores + _take(offsets, parents)[..., None], -jnp.inf)
    best, places = jax.lax.top_k(scores.reshape(batch, -1), count)
    return Candidates(best, _take(parents, places // width), _take(tokens.reshape(batch, -1), places))


def _tiles(logits: Float[Array, "B K V"], spelling: Spelling | None, width: int) -> tuple[Array, Array]:
    """The logits in tiles, "B K tiles width", and the highest allowed logit of each tile.

    If nothing must be spelled, only the first tile has tokens that are not allowed; masking all would cost a pass.
    """
    shape = *logits.shape[:2], -1, width
    tiles = logits.reshape(shape)
    if spelling is None:
        first = jnp.where(jnp.arange(width) < EOS, -jnp.inf, tiles[:, :, 0]).max(axis=-1)
        return tiles, tiles.max(axis=-1).at[:, :, 0].set(first)
    may_come = allowed(jnp.arange(logits.shape[2]), spelling).reshape(shape)
    return tiles, jnp.where(may_come, tiles, -jnp.inf).max(axis=-1)


def allowed(tokens: Int[Array, "*#B C"], spelling: Spelling | None) -> Bool[Array, "*#B C"]:
    """Which tokens may come next: all but PAD, UNK and BOS, or only those that continue a text to be spelled."""
    if spelling is None:
        return tokens >= EOS
    return spelling.table[spelling.states[..., None], tokens] >= 0


def log_normalizers(logits: Float[Array, "*rows V"]) -> Float[Array, "*rows"]:
    """log Σ exp of each row. The maximum is taken over tiles, as in ``likeliest``, so that it is computed once."""
    width = tile_width(logits.shape[-1])
    highest = logits.reshape(*logits.shape[:-1], -1, width).max(axis=-1).max(axis=-1)
    return highest + jnp.log(jnp.exp(logits - highest[..., None]).sum(axis=-1))


def tile_width(vocabulary: int) -> int:
    """The largest divisor of the vocabulary size up to 64, or the whole size if the special tokens do not fit in it."""
    width = max(divisor for divisor in range(1, 65) if vocabulary % divisor == 0)
    return width if width > EOS else vocabulary


def _take(values: Array, places: Int[Array, "B C"]) -> Array:
    return jnp.take_along_axis(values, places, axis=1)
