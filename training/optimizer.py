"""Learning-rate schedules and the optimizer."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PyTree

from training.config import TrainingConfig
from training.factors import factor_at
from training.muon import scale_by_muon


def learning_rate(config: TrainingConfig) -> optax.Schedule:
    """Updates done so far → learning rate of the next: linear warm-up to the peak, then the chosen decay.

    inverse_sqrt is √(warm-up / step) times the peak (Vaswani et al. 2017, section 5.3). Three schedules reach zero
    right after the run's last step: cosine (Loshchilov and Hutter 2017), linear, and wsd, which is linear over its last
    ``decay_steps`` (Hägele et al. 2024, section 3).
    """
    peak, warmup, end = config.learning_rate, max(config.warmup_steps, 1), float(config.steps + 1)  # may be 2³¹

    def rate(updates: jax.typing.ArrayLike) -> jax.Array:
        step = jnp.asarray(updates, jnp.float32) + 1
        left = jnp.clip((end - step) / max(end - warmup, 1), 0, 1)
        match config.schedule:
            case "inverse_sqrt":
                decay = jnp.sqrt(warmup / jnp.maximum(step, warmup))
            case "cosine":
                decay = 0.5 * (1 - jnp.cos(jnp.pi * left))
            case "linear":
                decay = left
            case "wsd":
                decay = jnp.clip((end - step) / float(config.decay_steps + 1), 0, 1)
            case "constant":
                decay = jnp.ones(())
            case _:
                raise NotImplementedError(f"training.schedule={config.schedule}")
        scheduled = peak * jnp.minimum(step / warmup, decay)
        return scheduled * factor_at(config.learning_rate_factor, updates) if config.learning_rate_factor else scheduled

    return rate


def weight_decay(config: TrainingConfig) -> float | optax.Schedule:
    """The decay, or updates done so far → decay of the next one. Both optimizers multiply it by their learning rate."""
    decay, points = config.weight_decay, config.weight_decay_factor
    return (lambda updates: decay * factor_at(points, updates)) if points else decay


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """Clipping by global norm, then Adam (Kingma and Ba 2015), AdamW (Loshchilov and Hutter 2019) or Muon.

    Muon updates the matrices of dense layers; Adam updates embeddings, norms and biases. Muon's updates are as large as
    Adam's, so both share one learning rate. The embedding table has ``embedding_rate`` times that rate.
    """
    chosen, factor = _optimizer(config), config.embedding_rate
    if factor == 1:
        return chosen

    def update(gradients: PyTree, state: PyTree, params: PyTree) -> tuple[PyTree, PyTree]:
        updates, state = chosen.update(gradients, state, params)
        scaled = jax.tree.map_with_path(lambda path, leaf: leaf * factor if is_embedding(path) else leaf, updates)
        return scaled, state

    return optax.GradientTransformation(chosen.init, update)


def _optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    clip = optax.clip_by_global_norm(config.clip_norm) if config.clip_norm else optax.identity()
    rate = learning_rate(config)
    moments = {"b1": config.beta1, "b2": config.beta2, "eps": config.epsilon}
    match config.optimizer:
        case "adam":
            return optax.chain(clip, optax.adam(rate, **moments))
        case "adamw":
            matrices = partial(jax.tree.map, lambda leaf: leaf.ndim > 1)
            return optax.chain(clip, optax.adamw(rate, **moments, weight_decay=weight_decay(config), mask=matrices))
        case "muon":
            decay = optax.add_decayed_weights(weight_decay(config))
            muon = optax.chain(scale_by_muon(), decay, optax.scale_by_learning_rate(rate))
            return optax.chain(clip, optax.partition({"dense": muon, "rest": optax.adam(rate, **moments)}, kinds))
        case _:
            raise NotImplementedError(f"training.optimizer={config.optimizer}")


def is_embedding(path: tuple[Any, ...]) -> bool:
    """Whether this is the embedding table, as opposed to a table of relative positions."""
    return (path[0].key, path[-1].key) == ("embedding", "table")


def kinds(params: PyTree) -> PyTree:
    """``dense`` for the matrices of dense layers, ``rest`` for every other parameter."""
    return jax.tree.map_with_path(lambda path, _: "dense" if path[-1].key == "kernel" else "rest", params)
