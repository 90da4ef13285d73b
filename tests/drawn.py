"""Parameters and states drawn by NumPy: a program that initializes a model takes a second or two to compile."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from model.config import ModelConfig
from model.transformer import Params, structure
from training.config import TrainingConfig
from training.state import TrainState, initial_state_from


def drawn_params(config: ModelConfig, vocab_size: int) -> Params:
    """Parameters of about the deviations that training starts with; biases are not 0 and scales not 1."""
    draw = np.random.default_rng(0)

    def normal(path: tuple[Any, ...], leaf: Any) -> jax.Array:
        is_scale = jax.tree_util.keystr(path[-1:], simple=True) == "scale"
        return jnp.asarray(is_scale + draw.standard_normal(leaf.shape) / leaf.shape[-1] ** 0.5, jnp.float32)

    return jax.tree_util.tree_map_with_path(normal, nnx.to_pure_dict(structure(config, vocab_size)[1]))


def drawn_state(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """The state before the first step with such parameters."""
    return initial_state_from(drawn_params(model, vocab_size), training)
