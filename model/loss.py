"""Cross-entropy with label smoothing (Szegedy et al. 2016, section 7), summed over real tokens."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch, in nats; divide by ``tokens`` after all sums are added."""

    smoothed: Float[Array, ""]
    cross_entropy: Float[Array, ""]
    tokens: Float[Array, ""]


def cross_entropy(
    logits: Float[Array, "*rows V"], labels: Int[Array, "*rows"], real: Bool[Array, "*rows"], smoothing: float
) -> Loss:
    """Loss against (1 - smoothing) of the label and smoothing spread evenly over the vocabulary.

    In closed form, log Σ exp z - (1 - smoothing) z[label] - smoothing mean(z), with no array of smoothed labels.
    Sums, not means: packing, accumulation and sharding do not change them.
    """
    normalizer = jax.nn.logsumexp(logits, axis=-1)
    # A comparison instead of indexing: its gradient fuses with the softmax's, where indexing would need a scatter.
    is_label = jnp.arange(logits.shape[-1]) == labels[..., None]
    label_logit = jnp.sum(jnp.where(is_label, logits, 0), axis=-1)
    nats = normalizer - label_logit
    smoothed = normalizer - (1 - smoothing) * label_logit - smoothing * jnp.mean(logits, axis=-1)
    return Loss(
        smoothed=jnp.sum(jnp.where(real, smoothed, 0)),
        cross_entropy=jnp.sum(jnp.where(real, nats, 0)),
        tokens=jnp.sum(real, dtype=jnp.float32),
    )
