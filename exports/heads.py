"""Attention and positions in the layout of other libraries: a row of weights for each output, heads of equal width.

D model width · N query head · G key/value head · H width of a query/key head · U width of a value head · W any width
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from model.config import ModelConfig
from model.positions import sinusoidal_positions
from model.transformer import Params

LONGEST = 1024  # tokens on either side, for tables of sinusoidal positions and ALiBi

Array = Float[np.ndarray, "..."]


class Linear(NamedTuple):
    """A dense layer with a row of weights for each output."""

    weight: Float[np.ndarray, "*outputs inputs"]
    bias: Float[np.ndarray, "*outputs"]


class Heads(NamedTuple):
    """Attention's four layers with separate heads."""

    query: Linear  # N H D
    key: Linear  # G H D
    value: Linear  # G U D
    output: Float[np.ndarray, "N U D"]  # what each head's values add to the output
    output_bias: Float[np.ndarray, " D"]


def dense(params: Params) -> Linear:
    """Convert one of our dense layers."""
    return Linear(np.asarray(params["kernel"]).T, np.asarray(params["bias"]))


def split_heads(config: ModelConfig, params: Params) -> Heads:
    """Attention's layers, with the matrix of a general score folded into the query: qᵀ W k = (Wᵀ q)ᵀ k."""
    heads = {"query": config.num_heads, "key": config.groups, "value": config.groups}
    query, key, value = (split_rows(dense(params[name]), count) for name, count in heads.items())
    if "weights" in params.get("score", {}):
        weights = np.asarray(params["score"]["weights"]).swapaxes(1, 2)  # N H H
        query = Linear(weights @ query.weight, np.einsum("NIH,NH->NI", weights, query.bias))
    output = np.asarray(params["output"]["kernel"]).reshape(config.num_heads, -1, config.d_model)
    return Heads(query, key, value, output, np.asarray(params["output"]["bias"]))


def join_heads(heads: Heads, width: int) -> list[Linear]:
    """The layers of query, key, value and output, with every head padded to ``width`` with zeros."""
    rows = jax.tree.map(lambda array: pad_axis(array, width).reshape(-1, *array.shape[2:]), heads[:3])
    output = pad_axis(heads.output, width)
    return [*rows, Linear(output.reshape(-1, output.shape[-1]).T, heads.output_bias)]


def split_rows(layer: Linear, heads: int) -> Linear:
    return Linear(*(array.reshape(heads, -1, *array.shape[1:]) for array in layer))


def pad_axis(array: Array, length: int, axis: int = 1) -> Array:
    """Pad the end of an axis with zeros, up to ``length``."""
    missing = [(0, length - size if index == axis else 0) for index, size in enumerate(array.shape)]
    return np.pad(array, missing)


def scale_of(config: ModelConfig) -> float:
    """The factor that scales the dot product of a query and a key."""
    return {"scaled_dot_product": 1 / math.sqrt(config.head_dim), "dot_product": 1.0, "general": 1.0}[config.score]


def longest(config: ModelConfig) -> int:
    """The most tokens on either side, including EOS."""
    return config.max_positions if config.positions == "learned" else LONGEST


def position_table(config: ModelConfig, params: Params) -> Float[np.ndarray, "positions D"]:
    """The vectors of learned or sinusoidal positions, which are added to the embeddings."""
    if config.positions == "learned":
        return np.asarray(params["embedding"]["positions"])
    return np.asarray(sinusoidal_positions(jnp.arange(LONGEST)[None], config.d_model)[0])
