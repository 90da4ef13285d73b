"""Parameters and states drawn by NumPy: a program that initializes a model takes a second or two to compile."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from common.special_tokens import EOS
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


def make_ending(params: Any, end: float, scale: float) -> None:
    """Give EOS the logit ``end`` and PAD, UNK and BOS that of as good as never."""
    bias = 100 * params["final_norms"][1]["bias"]  # what all outputs have in common
    table, direction = params["embedding"]["table"], bias / jnp.sum(bias**2)
    logits = jnp.zeros(len(table)).at[: EOS + 1].set(jnp.array([-300.0, -300.0, -300.0, end]))
    params["final_norms"][1] = {"bias": bias, "scale": scale * params["final_norms"][1]["scale"]}
    params["embedding"]["table"] = table + jnp.outer(logits - table @ bias, direction)
