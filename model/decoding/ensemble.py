"""Decoding with an ensemble: the next-token probabilities of several models are averaged. One model is the usual case.

The models share a vocabulary; everything else about them may differ.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from common.special_tokens import BOS
from model.cache import Cache
from model.transformer import Tokens, Transformer

Models = tuple[Transformer, ...]
Caches = tuple[Cache, ...]


def start_caches(models: Models, source: Tokens, beams: int, max_length: int) -> Caches:
    """Every model's cache of the encoded sources, with room for ``beams`` hypotheses of ``max_length`` tokens."""
    encoded = [model.encode(source) for model in models]
    return tuple(
        model.start_cache(output, source.segments, beams=beams, max_length=max_length)
        for model, output in zip(models, encoded, strict=True)
    )


def decode_step(
    models: Models, tokens: Int[Array, "B K T"], position: Int[Array, ""], caches: Caches
) -> tuple[Float[Array, "B K V"], Float[Array, "B K S"], Caches]:
    """``Transformer.decode_step`` of the ensemble, at the token before ``position`` of each hypothesis, or BOS.

    Returns the ensemble's logits, its mean attention to the source, and the new caches.
    """
    ids = jnp.where(position == 0, BOS, tokens[:, :, position - 1])
    steps = [model.decode_step(ids, position, cache) for model, cache in zip(models, caches, strict=True)]
    logits, seen, new = zip(*steps, strict=True)
    return mixture(logits), jnp.mean(jnp.stack(seen), axis=0), new


def mixture(logits: tuple[Float[Array, "*rows V"], ...]) -> Float[Array, "*rows V"]:
    """The logarithm of the models' mean probabilities; the logits of a single model as they are."""
    if len(logits) == 1:
        return logits[0]
    log_probs = jnp.stack([jax.nn.log_softmax(model_logits) for model_logits in logits])
    return jax.nn.logsumexp(log_probs, axis=0) - math.log(len(logits))
