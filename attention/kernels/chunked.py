"""Attention in chunks of queries, in memory that grows with the length of a row, not with its square.

The weights of a chunk are computed, used and discarded, and computed again for the gradients (Rabe and Staats 2021;
the gradients as in Dao et al. 2022, appendix B.4). Scores are transposed, keys before queries, so that every product
reads its operands in the order of memory. A product that sums over the rows of both operands, as the gradients of keys
and values otherwise would, runs at half the speed in XLA on a CPU.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention.kernels.layout import on_each_device, padded
from attention.kernels.request import Request, current_device, dot_product_only
from attention.masks import Mask, visible_keys

CHUNK = 128  # queries


class Rows(NamedTuple):
    """Segments of queries and keys, and the queries' places in their row, in a batch or in one sentence."""

    query_segments: Int[Array, "*B T"]
    key_segments: Int[Array, "*B S"]
    query_places: Int[Array, "*B T"]


def unsupported(request: Request) -> str | None:
    if request.bias:
        return "takes no position bias, which is as large as the scores that it avoids"
    return dot_product_only(request)


def chunked(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Attention in chunks. On a mesh, each device loops over its own rows and heads."""
    return on_each_device(partial(_attend, scale=scale), query, key, value, mask)


def _attend(query: Array, key: Array, value: Array, mask: Mask, *, scale: float) -> Array:
    """The query heads that share a key/value head become one head with more queries."""
    (batch, heads, length, width), groups = query.shape, key.shape[1]
    shared = heads // groups
    query = query.reshape(batch, groups, shared * length, width)
    segments = jnp.tile(mask.query_segments, shared)
    places = jnp.tile(jnp.arange(length), (batch, shared))
    output = attend_in_chunks(query, key, value, Rows(segments, mask.key_segments, places), mask.causal, scale)
    return output.reshape(batch, heads, length, -1)


@partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def attend_in_chunks(query: Array, key: Array, value: Array, rows: Rows, causal: bool, scale: float) -> Array:
    """Attention of as many query heads as key/value heads, as loops with gradients written out.

    The gradients of autodiff would store the masks of all chunks.
    """
    return _forward(query, key, value, rows, causal, scale)[0]


def _forward(query: Array, key: Array, value: Array, rows: Rows, causal: bool, scale: float) -> tuple[Array, Any]:
    output, log_total = over_heads(partial(outputs_of_head, causal=causal, scale=scale), (query, key, value), rows)
    return output, ((query, key, value, output, log_total), rows)


def _backward(causal: bool, scale: float, saved: tuple[Any, Rows], gradient: Array) -> tuple[Array | None, ...]:
    heads, rows = saved
    return *over_heads(partial(gradients_of_head, causal=causal, scale=scale), (heads, gradient), rows), None


attend_in_chunks.defvjp(_forward, _backward)


def over_heads(head: Callable[..., Any], heads: tuple[Any, ...], rows: Rows) -> Any:
    """``head(*heads, rows)`` for every sentence and head: the arrays of ``heads`` have axes B G, those of ``rows`` B.

    With ``vmap``; but in a loop on a CPU, whose cache the scores of a single chunk fill.
    """
    lift = jax.lax.map if current_device().platform == "cpu" else lambda function, arrays: jax.vmap(function)(arrays)

    def sentence(arrays: tuple[tuple[Any, ...], Rows]) -> Any:
        heads, rows = arrays
        return lift(lambda arrays: head(*arrays, rows), heads)

    return lift(sentence, (heads, rows))


def outputs_of_head(query: Array, key: Array, value: Array, rows: Rows, *, causal: bool, scale: float) -> Any:
    """The outputs "T U" of one head of one sentence, and the logarithm of each query's softmax denominator."""
    value_T = value.T

    def of_chunk(chunk: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        query_T, segments, places = chunk
        visible = visible_keys(segments, rows.key_segments, causal=causal, query_places=places).T
        scores = jnp.where(visible, product(key, query_T) * scale, -jnp.inf)
        highest = jnp.max(scores, axis=0, initial=jnp.finfo(scores.dtype).min)
        exponentials = jnp.exp(scores - highest)
        total = jnp.sum(exponentials, axis=0)
        total = jnp.where(total == 0, 1, total)  # zero for a query that sees no key
        return product(value_T, exponentials.astype(value.dtype)) / total, highest + jnp.log(total)

    chunks = split(query).mT, split(rows.query_segments), split(rows.query_places)
    output_T, log_total = jax.lax.map(of_chunk, chunks)
    return join(output_T.mT, len(query)).astype(value.dtype), join(log_total, len(query))


def gradients_of_head(saved: tuple[Array, ...], gradient: Array, rows: Rows, *, causal: bool, scale: float) -> Any:
    """The gradients of query, key and value for one head of one sentence, from the gradient "T U" of its output."""
    query, key, value, output, log_total = saved
    key_T = key.T
    mean = jnp.sum(gradient.astype(jnp.float32) * output.astype(jnp.float32), axis=-1)

    def of_chunk(sums: tuple[Array, Array], chunk: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        query, log_total, gradient, mean, segments, places = chunk
        visible = visible_keys(segments, rows.key_segments, causal=causal, query_places=places).T
        weights = jnp.exp(jnp.where(visible, product(key, query.T) * scale - log_total, -jnp.inf))
        score_gradient = (weights * (product(value, gradient.T) - mean) * scale).astype(query.dtype)
        key_gradient = sums[0] + product(score_gradient, query)
        value_gradient = sums[1] + product(weights.astype(value.dtype), gradient)
        return (key_gradient, value_gradient), product(key_T, score_gradient)

    chunks = tuple(map(split, (query, log_total, gradient, mean, rows.query_segments, rows.query_places)))
    zeros = jnp.zeros(key.shape), jnp.zeros(value.shape)
    (key_gradient, value_gradient), query_gradient_T = jax.lax.scan(of_chunk, zeros, chunks)
    query_gradient = join(query_gradient_T.mT, len(query))
    return query_gradient.astype(query.dtype), key_gradient.astype(key.dtype), value_gradient.astype(value.dtype)


def product(left: Float[Array, "rows inner"], right: Float[Array, "inner columns"]) -> Float[Array, "rows columns"]:
    """A matrix product with float32 sums."""
    if current_device().platform == "cpu":  # which lacks this product of bfloat16 operands in some layouts
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


def split(array: Array) -> Array:
    """Axis T in chunks, the last one zero-padded; a row shorter than a chunk is one chunk of its own length."""
    size = min(CHUNK, len(array))
    return padded(array, 0, size).reshape(-1, size, *array.shape[1:])


def join(chunks: Array, length: int) -> Array:
    """The inverse of ``split``."""
    return chunks.reshape(-1, *chunks.shape[2:])[:length]
