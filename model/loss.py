"""Cross-entropy with label smoothing (Szegedy et al. 2016, section 7), summed over real tokens."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

CHUNK = 1024  # positions whose logits are in memory at a time
Project = Callable[[Array, Array], Array]  # from decoder outputs and the table to logits


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch, in nats; divide by ``tokens`` after adding all sums."""

    objective: Float[Array, ""]  # what training minimises
    cross_entropy: Float[Array, ""]
    tokens: Float[Array, ""]
    divergence: Float[Array, ""]  # between the two views of consistency training (model/consistency.py), else 0


LossOfLogits = Callable[[Array, Array, Array], Loss]  # from logits, labels and which of them are real


def cross_entropy(
    logits: Float[Array, "*rows V"], labels: Int[Array, "*rows"], real: Bool[Array, "*rows"], smoothing: float
) -> Loss:
    """Cross-entropy against labels that give (1 - smoothing) to the next token and smoothing evenly to all tokens.

    In closed form, log Σ exp z - (1 - smoothing) z[label] - smoothing mean(z), without an array of smoothed labels.
    Unlike means, these sums are unaffected by packing, accumulation and sharding.
    """
    normalizer = jax.nn.logsumexp(logits, axis=-1)
    # The gradient of a comparison fuses with the softmax's; that of indexing would be a scatter.
    is_label = jnp.arange(logits.shape[-1]) == labels[..., None]
    label_logit = jnp.sum(jnp.where(is_label, logits, 0), axis=-1)
    nats = normalizer - label_logit
    smoothed = normalizer - (1 - smoothing) * label_logit - smoothing * jnp.mean(logits, axis=-1)
    return Loss(
        objective=jnp.sum(jnp.where(real, smoothed, 0)),
        cross_entropy=jnp.sum(jnp.where(real, nats, 0)),
        tokens=jnp.sum(real, dtype=jnp.float32),
        divergence=jnp.zeros(()),
    )


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def loss_in_chunks(
    project: Project,
    loss: LossOfLogits,
    x: Float[Array, "B T D"],
    table: Float[Array, "V D"],
    labels: Int[Array, "B T"],
    real: Bool[Array, "B T"],
) -> Loss:
    """``loss`` of the logits ``project(x, table)``, a chunk of positions at a time; only its objective has gradients.

    Logits are by far the largest array in training. The gradients of a chunk are computed together with its logits, so
    logits are neither stored nor computed twice.
    """
    chunks = _chunks(x, labels, real)
    losses = jax.lax.map(lambda chunk: loss(project(chunk[0], table), chunk[1], chunk[2]), chunks)
    return jax.tree.map(jnp.sum, losses)


def _forward(
    project: Project, loss: LossOfLogits, x: Array, table: Array, labels: Array, real: Array
) -> tuple[Loss, tuple[Array, Array]]:
    def add(table_gradient: Array, chunk: tuple[Array, ...]) -> tuple[Array, tuple[Loss, Array]]:
        x, labels, real = chunk

        def objective(x: Array, table: Array) -> tuple[Array, Loss]:
            sums = loss(project(x, table), labels, real)
            return sums.objective, sums

        (x_gradient, more), sums = jax.grad(objective, argnums=(0, 1), has_aux=True)(x, table)
        return table_gradient + more, (sums, x_gradient)

    table_gradient, (sums, x_gradient) = jax.lax.scan(add, jnp.zeros_like(table), _chunks(x, labels, real))
    batch, length, width = x.shape
    x_gradient = jnp.moveaxis(x_gradient, 0, 1).reshape(batch, -1, width)[:, :length]
    return jax.tree.map(jnp.sum, sums), (x_gradient, table_gradient)


def _backward(
    project: Project, loss: LossOfLogits, gradients: tuple[Array, Array], cotangent: Loss
) -> tuple[Array, Array, None, None]:
    x_gradient, table_gradient = gradients
    return x_gradient * cotangent.objective.astype(x_gradient.dtype), table_gradient * cotangent.objective, None, None


loss_in_chunks.defvjp(_forward, _backward)


def _chunks(*arrays: Array) -> tuple[Array, ...]:
    """Arrays "B T …" as "chunks B T/chunks …", with ``CHUNK`` to ``2 * CHUNK`` positions per chunk if T allows it.

    If no suitable number divides T, as when T is prime, it is padded with zeros, which do not count as real.
    """
    batch, length = arrays[0].shape[:2]
    most = min(length, max(1, batch * length // CHUNK))
    size = -(-length // next((count for count in range(most, most // 2, -1) if length % count == 0), most))
    count = -(-length // size)
    filled = [jnp.pad(a, [(0, 0), (0, count * size - length), *[(0, 0)] * (a.ndim - 2)]) for a in arrays]
    return tuple(jnp.moveaxis(a.reshape(batch, count, size, *a.shape[2:]), 1, 0) for a in filled)
