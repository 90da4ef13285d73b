"""One or several models as one: their next-token probabilities are averaged. A single model is an ensemble of one.

The models share a vocabulary; everything else about them may differ.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from model.decoding.cache import Cache, branch
from model.transformer import Transformer

Models = tuple[Transformer, ...]
Caches = tuple[Cache, ...]


def start(
    models: Models, source_tokens: Int[Array, "B S"], source_segments: Int[Array, "B S"], beams: int, max_length: int
) -> Caches:
    """Every model's cache for the encoded sources, with room for ``beams`` hypotheses of ``max_length`` tokens."""
    positions = jnp.broadcast_to(jnp.arange(source_tokens.shape[1]), source_tokens.shape)
    encoded = [model.encode(source_tokens, source_segments, positions) for model in models]
    return tuple(
        model.start_cache(each, source_segments, beams=beams, max_length=max_length)
        for model, each in zip(models, encoded, strict=True)
    )


def step(
    models: Models, tokens: Int[Array, "B K"], position: Int[Array, ""], caches: Caches
) -> tuple[Float[Array, "B K V"], Float[Array, "B K S"], Caches]:
    """Logits of the ensemble after the tokens at ``position``, how it saw the source, and the caches with the tokens.

    See ``Transformer.decode_step``.
    """
    steps = [model.decode_step(tokens, position, cache) for model, cache in zip(models, caches, strict=True)]
    logits, seen, new = zip(*steps, strict=True)
    return mixture(logits), jnp.mean(jnp.stack(seen), axis=0), new


def branch_all(caches: Caches, parents: Int[Array, "B K"], position: Int[Array, ""]) -> Caches:
    """``branch`` for the cache of every model."""
    return tuple(branch(cache, parents, position) for cache in caches)


def mixture(logits: tuple[Float[Array, "*rows V"], ...]) -> Float[Array, "*rows V"]:
    """Logits of the mean of the models' probabilities; a single model's own, untouched."""
    if len(logits) == 1:
        return logits[0]
    log_probs = jnp.stack([jax.nn.log_softmax(each) for each in logits])
    return jax.nn.logsumexp(log_probs, axis=0) - math.log(len(logits))
