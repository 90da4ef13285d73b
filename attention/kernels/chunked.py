"""Attention in chunks of queries, in memory that grows with the length of a row, not with its square.

The weights of a chunk are computed, used, discarded, and recomputed for the gradients (Rabe and Staats 2021; the
gradients follow Dao et al. 2022, appendix B.4). Scores are transposed, keys before queries, so that every product
reads its operands in memory order. Otherwise the gradients of keys and values would need a product that sums over the
rows of both operands, which XLA runs at half the speed on a CPU.

On a CPU, a chunk of queries reads only a window of the keys, the narrowest that contains every key it sees: causality
hides later keys, and segments hide those of other sentences. On other devices all chunks of a batch are computed at
once and read all keys.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention.kernels.layout import padded
from attention.kernels.request import Request, current_device, dot_product_only
from attention.masks import Mask, visible_keys

CHUNK = 128  # queries
WINDOWS = 1, 2, 4, 6, 8  # eighths of the keys; more of them would take longer to compile


class Rows(NamedTuple):
    """Segments of queries and keys, and the queries' places in their row, for a batch or one sentence."""

    query_segments: Int[Array, "*B T"]
    key_segments: Int[Array, "*B S"]
    query_places: Int[Array, "*B T"]


def unsupported(request: Request) -> str | None:
    if request.bias:
        return "takes no position bias, which is as large as the scores that it avoids"
    return dot_product_only(request)


def chunked(query: Array, key: Array, value: Array, mask: Mask, scale: float) -> Array:
    """Attention in chunks. The query heads that share a key/value head become one head with more queries."""
    (batch, heads, length, width), groups = query.shape, key.shape[1]
    shared = heads // groups
    query = query.reshape(batch, groups, shared * length, width)
    segments = jnp.tile(mask.query_segments, shared)
    places = jnp.tile(jnp.arange(length), (batch, shared))
    output = attend_in_chunks(query, key, value, Rows(segments, mask.key_segments, places), mask.causal, scale)
    return output.reshape(batch, heads, length, -1)


@partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def attend_in_chunks(query: Array, key: Array, value: Array, rows: Rows, causal: bool, scale: float) -> Array:
    """Attention with one query head per key/value head; has its own gradients, as autodiff would store all masks."""
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

    ``heads`` have axes B G, ``rows`` B. Uses ``vmap``, or a loop on a CPU, where one chunk's scores fill the cache.
    """
    lift = jax.lax.map if current_device().platform == "cpu" else lambda function, arrays: jax.vmap(function)(arrays)

    def sentence(arrays: tuple[tuple[Any, ...], Rows]) -> Any:
        heads, rows = arrays
        spans = visible_spans(rows, causal)
        return lift(lambda arrays: head(*arrays, rows, spans), heads)

    return lift(sentence, (heads, rows))


def visible_spans(rows: Rows, causal: bool) -> Int[Array, "chunks 2"]:
    """For each chunk of queries, the first key that any of them sees, and one past the last."""

    def span(chunk: tuple[Array, Array]) -> Array:
        segments, places = chunk
        seen = visible_keys(segments, rows.key_segments, causal=causal, query_places=places).any(axis=0)
        return jnp.where(seen.any(), jnp.stack([jnp.argmax(seen), len(seen) - jnp.argmax(seen[::-1])]), 0)

    return jax.lax.map(span, (split(rows.query_segments), split(rows.query_places)))


def over_window(function: Callable[[Callable[..., Array], Array | int], Any], span: Int[Array, "2"], keys: int) -> Any:
    """``function(window, start)`` for the narrowest window that contains the span; the window begins at key ``start``.

    ``window(array, axis=0)`` slices the window out of an array whose ``axis`` runs over the keys.
    """

    def within(start: Array | int, width: int) -> Any:
        return function(partial(jax.lax.dynamic_slice_in_dim, start_index=start, slice_size=width), start)

    if current_device().platform != "cpu":
        return within(0, keys)
    (first, end), widths = span, sorted({-(-keys * eighths // 8) for eighths in WINDOWS})
    windows = [partial(within, jnp.maximum(end - width, 0), width) for width in widths]
    return jax.lax.switch(jnp.sum(end - first > jnp.array(widths[:-1], jnp.int32)), windows)


def outputs_of_head(
    query: Array, key: Array, value: Array, rows: Rows, spans: Array, *, causal: bool, scale: float
) -> tuple[Array, Array]:
    """The outputs "T U" of one head of one sentence, and the logarithm of each query's softmax denominator."""
    value_T = value.T

    def of_chunk(chunk: tuple[Array, ...]) -> tuple[Array, Array]:
        query_T, segments, places, span = chunk

        def of_window(window: Callable[..., Array], start: Array | int) -> tuple[Array, Array]:
            key_segments, query_places = window(rows.key_segments), places - start
            visible = visible_keys(segments, key_segments, causal=causal, query_places=query_places).T
            scores = jnp.where(visible, product(window(key), query_T) * scale, -jnp.inf)
            highest = jnp.max(scores, axis=0, initial=jnp.finfo(scores.dtype).min)
            exponentials = jnp.exp(scores - highest)
            total = jnp.sum(exponentials, axis=0)
            total = jnp.where(total == 0, 1, total)  # zero for a query that sees no key
            weighted = product(window(value_T, axis=1), exponentials.astype(value.dtype))
            return weighted / total, highest + jnp.log(total)

        return over_window(of_window, span, len(key))

    chunks = split(query).mT, split(rows.query_segments), split(rows.query_places), spans
    output_T, log_total = jax.lax.map(of_chunk, chunks)
    return join(output_T.mT, len(query)).astype(value.dtype), join(log_total, len(query))


def gradients_of_head(
    saved: tuple[Array, ...], gradient: Array, rows: Rows, spans: Array, *, causal: bool, scale: float
) -> tuple[Array, Array, Array]:
    """The gradients of query, key and value for one head of one sentence, from the gradient "T U" of its output."""
    query, key, value, output, log_total = saved
    key_T = key.T
    mean = jnp.sum(gradient.astype(jnp.float32) * output.astype(jnp.float32), axis=-1)

    def of_chunk(sums: tuple[Array, Array], chunk: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        query, log_total, gradient, mean, segments, places, span = chunk

        def of_window(window: Callable[..., Array], start: Array | int) -> tuple[tuple[Array, Array], Array]:
            key_segments, query_places = window(rows.key_segments), places - start
            visible = visible_keys(segments, key_segments, causal=causal, query_places=query_places).T
            weights = jnp.exp(jnp.where(visible, product(window(key), query.T) * scale - log_total, -jnp.inf))
            score_gradient = (weights * (product(window(value), gradient.T) - mean) * scale).astype(query.dtype)
            key_gradient = window(sums[0]) + product(score_gradient, query)
            value_gradient = window(sums[1]) + product(weights.astype(value.dtype), gradient)
            put = partial(jax.lax.dynamic_update_slice_in_dim, start_index=start, axis=0)
            new_sums = put(sums[0], key_gradient), put(sums[1], value_gradient)
            return new_sums, product(window(key_T, axis=1), score_gradient)

        return over_window(of_window, span, len(key))

    queries = query, log_total, gradient, mean, rows.query_segments, rows.query_places
    zeros = jnp.zeros(key.shape), jnp.zeros(value.shape)
    (key_gradient, value_gradient), query_gradient_T = jax.lax.scan(of_chunk, zeros, (*map(split, queries), spans))
    query_gradient = join(query_gradient_T.mT, len(query))
    return query_gradient.astype(query.dtype), key_gradient.astype(key.dtype), value_gradient.astype(value.dtype)


def product(left: Float[Array, "rows inner"], right: Float[Array, "inner columns"]) -> Float[Array, "rows columns"]:
    """A matrix product with float32 sums."""
    if current_device().platform == "cpu":  # CPUs lack this product of bfloat16 operands in some layouts
        left, right = left.astype(jnp.float32), right.astype(jnp.float32)
    return jnp.matmul(left, right, preferred_element_type=jnp.float32)


def split(array: Array) -> Array:
    """Split axis T into chunks, the last one zero-padded; a row shorter than a chunk is one chunk of its own length."""
    size = min(CHUNK, len(array))
    return padded(array, 0, size).reshape(-1, size, *array.shape[1:])


def join(chunks: Array, length: int) -> Array:
    """The inverse of ``split``."""
    return chunks.reshape(-1, *chunks.shape[2:])[:length]
