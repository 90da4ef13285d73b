"""Learning-rate schedules and the optimizer."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from training.config import TrainingConfig


def learning_rate(config: TrainingConfig) -> optax.Schedule:
    """Updates done so far → learning rate of the next: linear warm-up to the peak, then the chosen decay.

    inverse_sqrt is √(warm-up / step) of the peak (Vaswani et al. 2017, section 5.3); cosine (Loshchilov and Hutter
    2017) and linear reach zero at the run's last step.
    """
    peak, warmup = config.learning_rate, max(config.warmup_steps, 1)

    def rate(updates: jax.typing.ArrayLike) -> jax.Array:
        step = jnp.asarray(updates, jnp.float32) + 1
        left = jnp.clip((config.steps + 1 - step) / max(config.steps + 1 - warmup, 1), 0, 1)
        match config.schedule:
            case "inverse_sqrt":
                decay = jnp.sqrt(warmup / jnp.maximum(step, warmup))
            case "cosine":
                decay = 0.5 * (1 - jnp.cos(jnp.pi * left))
            case "linear":
                decay = left
            case "constant":
                decay = jnp.ones(())
            case _:
                raise NotImplementedError(f"training.schedule={config.schedule}")
        return peak * jnp.minimum(step / warmup, decay)

    return rate


def optimizer(config: TrainingConfig) -> optax.GradientTransformation:
    """Clipping by global norm, then Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019)."""
    clip = optax.clip_by_global_norm(config.clip_norm) if config.clip_norm else optax.identity()
    moments = {"b1": config.beta1, "b2": config.beta2, "eps": config.epsilon}
    rate = learning_rate(config)
    match config.optimizer:
        case "adam":
            return optax.chain(clip, optax.adam(rate, **moments))
        case "adamw":
            matrices = partial(jax.tree.map, lambda leaf: leaf.ndim > 1)
            return optax.chain(clip, optax.adamw(rate, **moments, weight_decay=config.weight_decay, mask=matrices))
        case _:
            raise NotImplementedError(f"training.optimizer={config.optimizer}")
