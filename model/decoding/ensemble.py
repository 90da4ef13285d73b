"""Decoding with an ensemble of one or more models: average the next-token probabilities over a shared vocabulary."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from model.cache import Cache
from model.transformer import Transformer

Models = tuple[Transformer, ...]
Caches = tuple[Cache, ...]


def decode_step(
    models: Models, ids: Int[Array, "B K"], positions: Int[Array, " B"], caches: Caches
) -> tuple[Float[Array, "B K V"], Float[Array, "B K S"], Caches]:
    """``Transformer.decode_step`` of the ensemble: its logits, its mean attention to the source, and the new caches."""
    steps = [model.decode_step(ids, positions, cache) for model, cache in zip(models, caches, strict=True)]
    logits, seen, new = zip(*steps, strict=True)
    return mixture(logits), jnp.mean(jnp.stack(seen), axis=0), new


def mixture(logits: tuple[Float[Array, "*rows V"], ...]) -> Float[Array, "*rows V"]:
    """The logarithm of the models' mean probabilities; the logits of a single model are returned unchanged."""
    if len(logits) == 1:
        return logits[0]
    log_probs = jnp.stack([jax.nn.log_softmax(model_logits) for model_logits in logits])
    return jax.nn.logsumexp(log_probs, axis=0) - math.log(len(logits))
