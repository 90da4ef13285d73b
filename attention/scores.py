"""How well a query matches a key: the score functions of the literature, for one head of one sentence.

A ``Score`` is one of these functions with its learned array bound, if it has one: ``Score(additive, vector)``. It is a
pytree, so ``vmap`` over heads gives each head its own array. Scores are float32 whatever the dtype of the inputs.
``SCORES`` lists them for the config, the model and the tests.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Score = jax.tree_util.Partial


def scaled_dot_product(query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """q·k / √H (Vaswani et al. 2017, section 3.2.1). H is the width of a key, not the number of keys.

    If the components of q and k are independent with mean 0 and variance 1, q·k has variance H; dividing by √H
    restores 1.
    """
    return dot_product(query, key) / math.sqrt(query.shape[-1])


def dot_product(query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """q·k ("dot" of Luong et al. 2015, section 3.1)."""
    if query.dtype == jnp.float32:
        return jnp.einsum("TH,SH->TS", query, key)
    return _narrow_dot_product(query, key)


@jax.custom_vjp
def _narrow_dot_product(query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """q·k of bfloat16 operands. Autodiff would multiply them by the scores' float32 gradient in float32."""
    return jnp.einsum("TH,SH->TS", query, key, preferred_element_type=jnp.float32)


def _forward(query: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
    return _narrow_dot_product(query, key), (query, key)


def _backward(saved: tuple[Array, Array], gradient: Float[Array, "T S"]) -> tuple[Array, Array]:
    query, key = saved
    gradient = gradient.astype(query.dtype)
    return jnp.einsum("TS,SH->TH", gradient, key), jnp.einsum("TS,TH->SH", gradient, query)


_narrow_dot_product.defvjp(_forward, _backward)


def general(matrix: Float[Array, "H H"], query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """qᵀ W k with a learned W ("general" of Luong et al. 2015, section 3.1): multiplicative attention."""
    return dot_product(transform(matrix, query), key)


def transform(matrix: Float[Array, "H H"], query: Float[Array, "T H"]) -> Float[Array, "T H"]:
    """Wᵀq, which turns the general score into a dot product."""
    return jnp.matmul(query, matrix.astype(query.dtype))


def additive(vector: Float[Array, " H"], query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """v·tanh(q + k) with a learned v (Bahdanau et al. 2014, appendix A.1.2).

    The paper's W_a s and U_a h are the query and the key, which the head's projections compute. Every pair of query
    and key needs H tanh, so this score costs more time and memory than the others.
    """
    pairs = query[:, None, :].astype(jnp.float32) + key[None, :, :].astype(jnp.float32)
    return jnp.einsum("TSH,H->TS", jnp.tanh(pairs), vector.astype(jnp.float32))


class ScoreFunction(NamedTuple):
    """A score function, and the axes of the array that each head learns as its first argument: "H", "HH" or none."""

    function: Callable[..., Array]
    learned: str = ""


SCORES = {  # by the name of the function
    "scaled_dot_product": ScoreFunction(scaled_dot_product),
    "dot_product": ScoreFunction(dot_product),
    "general": ScoreFunction(general, learned="HH"),
    "additive": ScoreFunction(additive, learned="H"),
}
SCALED_DOT_PRODUCT = Score(scaled_dot_product)
DOT_PRODUCTS = ("scaled_dot_product", "dot_product", "general")  # those that ``as_dot_product`` can express


def as_dot_product(score: Score, query: Float[Array, "B N T H"]) -> tuple[Float[Array, "B N T H"], float]:
    """A query q and a scale such that scale · q·k is the score, for fused kernels; ValueError if there are none."""
    if score.func is scaled_dot_product:
        return query, 1 / math.sqrt(query.shape[-1])
    if score.func is dot_product:
        return query, 1.0
    if score.func is general:
        (matrices,) = score.args
        return jax.vmap(jax.vmap(transform), in_axes=(None, 0))(matrices, query), 1.0
    raise ValueError(f"{score.func.__name__} is not a dot product")
