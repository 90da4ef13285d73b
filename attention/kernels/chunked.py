"""Attention in chunks of queries, in memory that grows with the length of a row, not with its square.

The weights of a chunk are computed, used and discarded, and computed again for the gradients (Rabe and Staats 2021;
the gradients as in Dao et al. 2022, appendix B.4). Scores are transposed, keys before queries, so that every product
reads its operands in the order of memory. A product that sums over the rows of both operands, as the gradients of keys
and values otherwise would, runs at half the speed in XLA on a CPU.

On a CPU keys come in chunks, too, and those of which a chunk of queries sees none are skipped, be it for causality or
because they belong to other sentences of the row. Elsewhere all heads are computed at once, and so are all keys.
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
KEY_CHUNK = 256  # keys, on a CPU


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
    head = partial(outputs_of_head, causal=causal, scale=scale)
    output, log_total = over_heads(head, (query, key, value), rows, causal)
    return output, ((query, key, value, output, log_total), rows)


def _backward(causal: bool, scale: float, saved: tuple[Any, Rows], gradient: Array) -> tuple[Array | None, ...]:
    heads, rows = saved
    head = partial(gradients_of_head, causal=causal, scale=scale)
    return *over_heads(head, (heads, gradient), rows, causal), None


attend_in_chunks.defvjp(_forward, _backward)


def over_heads(head: Callable[..., Any], heads: tuple[Any, ...], rows: Rows, causal: bool) -> Any:
    """``head(*heads, rows, spans)`` for every sentence and head.

    The arrays of ``heads`` have axes B G, those of ``rows`` B. With ``vmap``; but in a loop on a CPU, whose cache the
    scores of a single chunk fill.
    """
    lift = jax.lax.map if current_device().platform == "cpu" else lambda function, arrays: jax.vmap(function)(arrays)

    def sentence(arrays: tuple[tuple[Any, ...], Rows]) -> Any:
        heads, rows = arrays
        spans = visible_spans(rows, causal)
        return lift(lambda arrays: head(*arrays, rows, spans), heads)

    return lift(sentence, (heads, rows))


def visible_spans(rows: Rows, causal: bool) -> Int[Array, "chunks 2"]:
    """For each chunk of queries, the chunks of keys of which it sees any: the first of them, and the one after all."""
    size = key_chunk(len(rows.key_segments))
    queries = split(rows.query_segments), split(rows.query_places)
    if size == len(rows.key_segments):  # nothing to skip
        return jnp.tile(jnp.array([0, 1]), (len(queries[0]), 1))

    def span(chunk: tuple[Array, Array]) -> Array:
        segments, places = chunk
        seen = visible_keys(segments, rows.key_segments, causal=causal, query_places=places).any(axis=0)
        first, end = jnp.argmax(seen), len(seen) - jnp.argmax(seen[::-1])
        return jnp.where(seen.any(), jnp.stack([first // size, -(-end // size)]), 0)

    return jax.lax.map(span, queries)


def outputs_of_head(
    query: Array, key: Array, value: Array, rows: Rows, spans: Array, *, causal: bool, scale: float
) -> tuple[Array, Array]:
    """The outputs "T U" of one head of one sentence, and the logarithm of each query's softmax denominator."""
    size = key_chunk(len(key))
    keys, values_T, key_segments = split(key, size), split(value, size).mT, split(rows.key_segments, size)

    def of_chunk(chunk: tuple[Array, ...]) -> tuple[Array, Array]:
        query_T, segments, places, span = chunk

        def add(number: Array | int, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            weighted, total, highest = sums
            places_here = places - number * size
            visible = visible_keys(segments, key_segments[number], causal=causal, query_places=places_here).T
            scores = jnp.where(visible, product(keys[number], query_T) * scale, -jnp.inf)
            new_highest = jnp.maximum(highest, jnp.max(scores, axis=0))
            exponentials, shrunk = jnp.exp(scores - new_highest), jnp.exp(highest - new_highest)
            weighted = weighted * shrunk + product(values_T[number], exponentials.astype(value.dtype))
            return weighted, total * shrunk + jnp.sum(exponentials, axis=0), new_highest

        queries = len(segments)
        nothing = (
            jnp.zeros((value.shape[1], queries)),
            jnp.zeros(queries),
            jnp.full(queries, jnp.finfo(jnp.float32).min),
        )
        weighted, total, highest = over_key_chunks(add, len(keys), span, nothing)
        total = jnp.where(total == 0, 1, total)  # zero for a query that sees no key
        return weighted / total, highest + jnp.log(total)

    chunks = split(query).mT, split(rows.query_segments), split(rows.query_places), spans
    output_T, log_total = jax.lax.map(of_chunk, chunks)
    return join(output_T.mT, len(query)).astype(value.dtype), join(log_total, len(query))


def gradients_of_head(
    saved: tuple[Array, ...], gradient: Array, rows: Rows, spans: Array, *, causal: bool, scale: float
) -> tuple[Array, Array, Array]:
    """The gradients of query, key and value for one head of one sentence, from the gradient "T U" of its output."""
    query, key, value, output, log_total = saved
    size = key_chunk(len(key))
    keys, values, key_segments = split(key, size), split(value, size), split(rows.key_segments, size)
    keys_T = keys.mT
    mean = jnp.sum(gradient.astype(jnp.float32) * output.astype(jnp.float32), axis=-1)

    def of_chunk(sums: tuple[Array, Array], chunk: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        query, log_total, gradient, mean, segments, places, span = chunk

        def add(number: Array | int, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            key_gradient, value_gradient, query_gradient_T = sums
            places_here = places - number * size
            visible = visible_keys(segments, key_segments[number], causal=causal, query_places=places_here).T
            scores = jnp.where(visible, product(keys[number], query.T) * scale, -jnp.inf)
            weights = jnp.exp(scores - log_total)
            score_gradient = weights * (product(values[number], gradient.T) - mean) * scale
            score_gradient = score_gradient.astype(query.dtype)
            key_gradient = key_gradient.at[number].add(product(score_gradient, query))
            value_gradient = value_gradient.at[number].add(product(weights.astype(value.dtype), gradient))
            return key_gradient, value_gradient, query_gradient_T + product(keys_T[number], score_gradient)

        key_gradient, value_gradient, query_gradient_T = over_key_chunks(
            add, len(keys), span, (*sums, jnp.zeros(query.T.shape))
        )
        return (key_gradient, value_gradient), query_gradient_T

    queries = (query, log_total, gradient, mean, rows.query_segments, rows.query_places)
    zeros = jnp.zeros(keys.shape), jnp.zeros(values.shape)
    (key_gradient, value_gradient), query_gradient_T = jax.lax.scan(of_chunk, zeros, (*map(split, queries), spans))
    query_gradient = join(query_gradient_T.mT, len(query))
    key_gradient, value_gradient = join(key_gradient, len(key)), join(value_gradient, len(key))
    return query_gradient.astype(query.dtype), key_gradient.astype(key.dtype), value_gradient.astype(value.dtype)


def over_key_chunks(add: Callable[..., Any], count: int, span: Array, sums: Any) -> Any:
    """``add(number, sums)`` for each chunk of keys in the span; all of one chunk is no loop."""
    return add(0, sums) if count == 1 else jax.lax.fori_loop(span[0], span[1], add, sums)


def key_chunk(keys: int) -> int:
    """How many keys come at a time."""
    return min(keys, KEY_CHUNK) if current_device().platform == "cpu" else keys


def product(left: Float[Array, "rows inner"], right: Float[Array, "inner columns"]) -> Float[Array, "rows columns"]:
    """A matrix product with float32 sums."""
    if current_device().platform == "cpu":  # which lacks this product of bfloat16 operands in some layouts
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


def split(array: Array, size: int = 0) -> Array:
    """The first axis in chunks of ``size`` (0: of queries), the last one zero-padded.

    A row shorter than a chunk is one chunk of its own length.
    """
    size = min(size or CHUNK, len(array))
    return padded(array, 0, size).reshape(-1, size, *array.shape[1:])


def join(chunks: Array, length: int) -> Array:
    """The inverse of ``split``."""
    return chunks.reshape(-1, *chunks.shape[2:])[:length]
