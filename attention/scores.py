"""How well a query matches a key: the score functions of the literature, for one head of one sentence.

A ``Score`` is one of these functions with its learned arrays bound, if it has any: ``Score(additive, vector)``. It
is a pytree, so ``vmap`` over heads gives each head its own arrays. Scores are float32 whatever the inputs are.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Score = jax.tree_util.Partial


def scaled_dot_product(query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """q·k / √H (Vaswani et al. 2017, section 3.2.1): H is the width of a key, not the number of keys.

    The products of H independent components of variance 1 add up to a variance of H; the root brings it back to 1.
    """
    return dot_product(query, key) / math.sqrt(query.shape[-1])


def dot_product(query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """q·k ("dot" of Luong et al. 2015, section 3.1)."""
    return jnp.einsum("TH,SH->TS", query, key, preferred_element_type=jnp.float32)


def general(matrix: Float[Array, "H H"], query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """qᵀ W k with a learned W ("general" of Luong et al. 2015, section 3.1): multiplicative attention."""
    return dot_product(turn(matrix, query), key)


def turn(matrix: Float[Array, "H H"], query: Float[Array, "T H"]) -> Float[Array, "T H"]:
    """Wᵀq, after which the general score is a plain dot product."""
    return jnp.matmul(query, matrix.astype(query.dtype), preferred_element_type=jnp.float32).astype(query.dtype)


def additive(vector: Float[Array, " H"], query: Float[Array, "T H"], key: Float[Array, "S H"]) -> Float[Array, "T S"]:
    """v·tanh(q + k) with a learned v (Bahdanau et al. 2014, appendix A.1.2).

    The paper's W_a s and U_a h are the query and the key here: a head's projections have made them. Every pair of a
    query and a key needs H tanh of its own, which is why this score costs more time and memory than the others.
    """
    pairs = query[:, None, :].astype(jnp.float32) + key[None, :, :].astype(jnp.float32)
    return jnp.einsum("TSH,H->TS", jnp.tanh(pairs), vector.astype(jnp.float32))


SCALED_DOT_PRODUCT = Score(scaled_dot_product)
DOT_PRODUCTS = ("scaled_dot_product", "dot_product", "general")  # what ``as_dot_product`` can express


def as_dot_product(score: Score, query: Float[Array, "B N T H"]) -> tuple[Float[Array, "B N T H"], float]:
    """The query and the factor with which a plain dot product gives a multiplicative score: what fused kernels take."""
    if score.func is scaled_dot_product:
        return query, 1 / math.sqrt(query.shape[-1])
    if score.func is dot_product:
        return query, 1.0
    if score.func is general:
        (matrices,) = score.args
        return jax.vmap(jax.vmap(turn), in_axes=(None, 0))(matrices, query), 1.0
    raise ValueError(f"{score.func.__name__} is not a dot product")
