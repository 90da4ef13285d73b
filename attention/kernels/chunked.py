"""Attention in chunks of queries: memory grows with the length of a row, not with its square, in both directions.

The weights of a chunk are made, used and forgotten, and made again for the gradients (Rabe and Staats 2021; the
gradients as in Dao et al. 2022, appendix B.4). Scores stand transposed here, keys before queries: so every product
reads its operands in the order of memory. One that sums over the rows of both, as the gradients of keys and values
otherwise would, runs at half the speed in XLA on a CPU.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from attention.kernels.request import Request, current_device
from attention.masks import visible_keys
from attention.scores import Score, as_dot_product

CHUNK = 128  # queries


def refusal(request: Request) -> str | None:
    if request.score == "additive":
        return "has dot-product scores only, not additive ones"
    if request.dropout:
        return "has no attention dropout"
    if request.bias:
        return "takes no position bias, which is as large as the scores that it avoids"
    return None


def chunked(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    dropout_rate: float,
    dropout_key: Key[Array, ""] | None,
) -> Float[Array, "B N T U"]:
    """``attend`` in chunks. The query heads that share a key/value head are more queries over the same keys."""
    query, scale = as_dot_product(score, query)
    (batch, heads, length, width), groups = query.shape, key.shape[1]
    shared = heads // groups
    query = query.reshape(batch, groups, shared * length, width)
    places = jnp.tile(jnp.arange(length), shared)

    def sentence(arrays: tuple[Array, ...]) -> Array:
        *heads, query_segments, key_segments = arrays
        segments = jnp.tile(query_segments, shared), key_segments
        return one_by_one(lambda head: attend_in_chunks(*head, *segments, places, causal, scale), tuple(heads))

    output = one_by_one(sentence, (query, key, value, query_segments, key_segments))
    return output.reshape(batch, heads, length, -1)


def one_by_one(function: Any, arrays: tuple[Array, ...]) -> Array:
    """``vmap``; but on a CPU one after the other, because the scores of one chunk fill its cache."""
    return jax.lax.map(function, arrays) if current_device().platform == "cpu" else jax.vmap(function)(arrays)


@partial(jax.custom_vjp, nondiff_argnums=(6, 7))
def attend_in_chunks(
    query: Float[Array, "T H"],
    key: Float[Array, "S H"],
    value: Float[Array, "S U"],
    query_segments: Int[Array, " T"],
    key_segments: Int[Array, " S"],
    query_places: Int[Array, " T"],
    causal: bool,
    scale: float,
) -> Float[Array, "T U"]:
    """One head of one sentence: ``attend_head`` with the score ``scale`` · q·k."""
    return _forward(query, key, value, query_segments, key_segments, query_places, causal, scale)[0]


def _forward(
    query: Array,
    key: Array,
    value: Array,
    query_segments: Array,
    key_segments: Array,
    query_places: Array,
    causal: bool,
    scale: float,
) -> tuple[Array, tuple[Array, ...]]:
    value_T = value.T

    def of_chunk(chunk: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        query_T, segments, places = chunk
        visible = visible_keys(segments, key_segments, causal=causal, query_places=places).T
        scores = jnp.where(visible, product(key, query_T) * scale, -jnp.inf)
        highest = jnp.max(scores, axis=0, initial=jnp.finfo(scores.dtype).min)
        exponentials = jnp.exp(scores - highest)
        total = jnp.sum(exponentials, axis=0)
        total = jnp.where(total == 0, 1, total)  # of a query that sees nothing
        return product(value_T, exponentials.astype(value.dtype)) / total, highest + jnp.log(total)

    chunks = split(query).mT, split(query_segments), split(query_places)
    output_T, log_total = jax.lax.map(of_chunk, chunks)
    output = join(output_T.mT, len(query)).astype(value.dtype)
    return output, (query, key, value, query_segments, key_segments, query_places, output, join(log_total, len(query)))


def _backward(causal: bool, scale: float, saved: tuple[Array, ...], gradient: Array) -> tuple[Array | None, ...]:
    query, key, value, query_segments, key_segments, query_places, output, log_total = saved
    key_T = key.T
    mean = jnp.sum(gradient.astype(jnp.float32) * output.astype(jnp.float32), axis=-1)

    def of_chunk(sums: tuple[Array, Array], chunk: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        query, segments, places, log_total, gradient, mean = chunk
        visible = visible_keys(segments, key_segments, causal=causal, query_places=places).T
        weights = jnp.exp(jnp.where(visible, product(key, query.T) * scale - log_total, -jnp.inf))
        score_gradient = (weights * (product(value, gradient.T) - mean) * scale).astype(query.dtype)
        key_gradient = sums[0] + product(score_gradient, query)
        value_gradient = sums[1] + product(weights.astype(value.dtype), gradient)
        return (key_gradient, value_gradient), product(key_T, score_gradient)

    zeros = jnp.zeros(key.shape), jnp.zeros(value.shape)
    chunks = tuple(map(split, (query, query_segments, query_places, log_total, gradient, mean)))
    (key_gradient, value_gradient), query_gradient_T = jax.lax.scan(of_chunk, zeros, chunks)
    query_gradient = join(query_gradient_T.mT, len(query))
    gradients = (query_gradient, query), (key_gradient, key), (value_gradient, value)
    return *(gradient.astype(of.dtype) for gradient, of in gradients), None, None, None


attend_in_chunks.defvjp(_forward, _backward)


def product(left: Float[Array, "rows inner"], right: Float[Array, "inner columns"]) -> Float[Array, "rows columns"]:
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


def split(array: Array) -> Array:
    """Axis T as chunks, the last one padded with zeros; a short row is one chunk of its own length."""
    size = min(CHUNK, len(array))
    count = -(-len(array) // size)
    padding = [(0, count * size - len(array)), *[(0, 0)] * (array.ndim - 1)]
    return jnp.pad(array, padding).reshape(count, size, *array.shape[1:])


def join(chunks: Array, length: int) -> Array:
    """What ``split`` took apart."""
    return chunks.reshape(-1, *chunks.shape[2:])[:length]
