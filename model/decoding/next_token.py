"""Which token may come next, and how likely it is.

B sentence · K beam · C candidate · V vocabulary
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from common.special_tokens import EOS, PAD


class Candidates(NamedTuple):
    """Continuations of a sentence's hypotheses by one token, likeliest first."""

    log_probs: Float[Array, "B C"]  # of hypothesis and token together
    parents: Int[Array, "B C"]  # the hypotheses that are continued
    tokens: Int[Array, "B C"]


def likeliest(
    log_probs: Float[Array, "B K"], logits: Float[Array, "B K V"], forced: Int[Array, " B"] | None, count: int
) -> Candidates:
    """The ``count`` likeliest continuations; ``log_probs`` are the hypotheses' own. See ``allowed`` for ``forced``.

    The best of K V continuations lie in the stretches of the vocabulary with the highest maxima, so only those are
    sorted: on a CPU, sorting or even arg-maximizing the whole costs several times as much as the softmax.
    """
    batch, _, vocabulary = logits.shape
    width = stretch_width(vocabulary)
    offsets = log_probs - log_normalizers(logits)
    stretches, highest = _stretches(logits, forced, width)
    bounds = (highest + offsets[..., None]).reshape(batch, -1)

    _, chosen = jax.lax.top_k(bounds, min(count, bounds.shape[1]))
    chosen = jnp.sort(chosen, axis=-1)  # places ascend again, so that equal continuations keep the order of their ids
    parents, numbers = jnp.divmod(chosen, highest.shape[2])
    tokens = numbers[..., None] * width + jnp.arange(width)
    scores = jnp.take_along_axis(stretches.reshape(batch, -1, width), chosen[..., None], axis=1)
    scores = jnp.where(allowed(tokens, forced), scores + _pick(offsets, parents)[..., None], -jnp.inf)
    best, places = jax.lax.top_k(scores.reshape(batch, -1), count)
    return Candidates(best, _pick(parents, places // width), _pick(tokens.reshape(batch, -1), places))


def _stretches(
    logits: Float[Array, "B K V"], forced: Int[Array, " B"] | None, width: int
) -> tuple[Float[Array, "B K P W"], Float[Array, "B K P"]]:
    """The vocabulary cut into P stretches of W tokens, and the highest logit of each that is allowed.

    Where nothing is forced, only the first stretch has tokens that are not: masking them all would cost a pass.
    """
    stretches = logits.reshape(*logits.shape[:2], -1, width)
    if forced is None:
        first = jnp.where(jnp.arange(width) < EOS, -jnp.inf, stretches[:, :, 0]).max(axis=-1)
        return stretches, stretches.max(axis=-1).at[:, :, 0].set(first)
    tokens = jnp.arange(logits.shape[2]).reshape(1, -1, width)
    masked = jnp.where(
        allowed(jnp.broadcast_to(tokens, (len(logits), *tokens.shape[1:])), forced)[:, None], stretches, -jnp.inf
    )
    return stretches, masked.max(axis=-1)


def allowed(tokens: Int[Array, "#B *rest"], forced: Int[Array, " B"] | None) -> Bool[Array, "#B *rest"]:
    """Which tokens may come next: any but PAD, UNK and BOS, or only the one that a sentence's prefix forces, if any.

    PAD in ``forced`` forces nothing.
    """
    if forced is None:
        return tokens >= EOS
    forced = forced.reshape(-1, *[1] * (tokens.ndim - 1))
    return jnp.where(forced == PAD, tokens >= EOS, tokens == forced)


def log_normalizers(logits: Float[Array, "*rows V"]) -> Float[Array, "*rows"]:
    """log Σ exp of each row. The maximum is taken over stretches, as ``likeliest`` takes it, so it is found once."""
    width = stretch_width(logits.shape[-1])
    highest = logits.reshape(*logits.shape[:-1], -1, width).max(axis=-1).max(axis=-1)
    return highest + jnp.log(jnp.exp(logits - highest[..., None]).sum(axis=-1))


def stretch_width(vocabulary: int) -> int:
    """The largest divisor of the vocabulary's size up to 64, if the special tokens fit into it; else all of it."""
    width = max(divisor for divisor in range(1, 65) if vocabulary % divisor == 0)
    return width if width > EOS else vocabulary


def _pick(values: Array, places: Int[Array, "B C"]) -> Array:
    return jnp.take_along_axis(values, places, axis=1)
