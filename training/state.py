"""Everything that evolves on the device during training."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int, UInt32

from model.config import ModelConfig
from model.transformer import Params, init_params, structure
from training.config import TrainingConfig
from training.optimizer import optimizer


class Sums(NamedTuple):
    """Sums over the steps since the last line of metrics. They are checkpointed, so a restart loses none of them."""

    smoothed: Float[Array, ""]  # the objective; the name is kept for older checkpoints
    cross_entropy: Float[Array, ""]
    target_tokens: Float[Array, ""]
    source_tokens: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    steps: Float[Array, ""]
    divergence: Float[Array, ""]


class Skipped(NamedTuple):
    """Counts of updates that were skipped because the loss, the gradient or the update was not finite."""

    in_row: Int[Array, ""]  # since the last update that was applied
    since_log: Int[Array, ""]  # since the last line of metrics
    in_all: Int[Array, ""]


class TrainState(NamedTuple):
    """The training state. ``averaged`` is the exponential moving average of the parameters, or None if it is off."""

    step: Int[Array, ""]
    params: Params
    opt_state: optax.OptState
    averaged: Params | None
    sums: Sums
    skipped: Skipped

    @property
    def inference_params(self) -> Params:
        """The parameters to evaluate and translate with: the average if there is one."""
        return self.params if self.averaged is None else self.averaged


def init_state(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """The state before the first step: parameters from the seed, zero moments, the average equal to the parameters."""
    return _init_state(model, training, vocab_size, np.uint32(training.seed))


def seeded_state(model: ModelConfig, training: TrainingConfig, vocab_size: int, seed: UInt32[Array, ""]) -> TrainState:
    """``init_state`` as a function to compile. The seed is an argument, so one cached program serves every seed."""
    return initial_state_from(init_params(model, vocab_size, jax.random.key(seed)), training)


_init_state = jax.jit(seeded_state, static_argnames=("model", "training", "vocab_size"))


def initial_state_from(params: Params, training: TrainingConfig) -> TrainState:
    """The state before the first step with these parameters."""
    averaged = jax.tree.map(jnp.copy, params) if training.ema_decay else None
    skipped = Skipped(*(jnp.zeros((), jnp.int32) for _ in Skipped._fields))
    step = jnp.zeros((), jnp.int32)
    return TrainState(step, params, optimizer(training).init(params), averaged, zero_sums(), skipped)


def state_shapes(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """The shapes and dtypes of a state's arrays."""
    params = nnx.to_pure_dict(structure(model, vocab_size)[1])
    shapes: TrainState = jax.eval_shape(partial(initial_state_from, training=training), params)
    return shapes


def zero_sums() -> Sums:
    """Zero sums, each in its own buffer: the training step donates them one by one."""
    return Sums(*(jnp.zeros(()) for _ in Sums._fields))


def reset_sums(state: TrainState) -> TrainState:
    """The state after a line of metrics: sums become zeros with the same sharding, as the compiled step requires."""
    sums, since_log = jax.tree.map(jnp.zeros_like, (state.sums, state.skipped.since_log))
    return state._replace(sums=sums, skipped=state.skipped._replace(since_log=since_log))
