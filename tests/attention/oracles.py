"""What the tests of attention share: random arrays, the scores, and attention written as loops in float64 NumPy.

The loops use nothing of the rooms but the names of the scores. They round nothing, and they hide a key by never
looking at it.
"""

import contextlib
import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention.kernels import chunked
from attention.kernels.request import tracing_for
from attention.masks import Mask
from attention.multihead import attend
from attention.scores import SCALED_DOT_PRODUCT, SCORES, Score


def normal(seed, *shape, dtype="float32"):
    """Independent numbers of variance 1."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def qkv(seed, batch, heads, groups, queries, keys, width, value_width, *, dtype="float32"):
    """Query, key and value."""
    shapes = (heads, queries, width), (groups, keys, width), (groups, keys, value_width)
    return [normal([seed, index], batch, *shape, dtype=dtype) for index, shape in enumerate(shapes)]


def float64(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


def scaled_dot_product(query, key):
    return dot_product(query, key) / math.sqrt(len(query))


def dot_product(query, key):
    return sum(q * k for q, k in zip(query, key, strict=True))


def general(matrix, query, key):
    return sum(q * matrix[i, j] * k for i, q in enumerate(query) for j, k in enumerate(key))


def additive(vector, query, key):
    return sum(v * math.tanh(q + k) for v, q, k in zip(vector, query, key, strict=True))


# How well one query matches one key, for every score of the config.
ORACLES: dict[str, Callable[..., float]] = {
    "scaled_dot_product": scaled_dot_product,
    "dot_product": dot_product,
    "general": general,
    "additive": additive,
}


def reference_weights(query, key, visible, bias=None, score=SCALED_DOT_PRODUCT):
    query, key, *arrays = float64(query, key, *score.args)
    weights = np.zeros((len(query), len(key)))
    for t, q in enumerate(query):
        scores = {s: ORACLES[score.func.__name__](*arrays, q, key[s]) for s in range(len(key)) if visible[t][s]}
        if bias is not None:
            scores = {s: number + float(bias[t, s]) for s, number in scores.items()}
        exponentials = {s: math.exp(number - max(scores.values())) for s, number in scores.items()}
        for s, exponential in exponentials.items():
            weights[t, s] = exponential / sum(exponentials.values())
    return weights


def reference_head(query, key, value, visible, bias=None, score=SCALED_DOT_PRODUCT):
    (value,) = float64(value)
    weights = reference_weights(query, key, visible, bias, score)
    nothing = np.zeros(value.shape[1])
    return np.array([sum((w * v for w, v in zip(row, value, strict=True)), nothing) for row in weights])


def reference(query, key, value, *, mask, bias=None, score=SCALED_DOT_PRODUCT):
    """``attend``: sentence by sentence, head by head; heads in a row share a key/value head."""
    (batch, heads, queries, _), (_, groups, keys, width) = query.shape, value.shape
    result = np.zeros((batch, heads, queries, width))
    for b in range(batch):
        q, k = mask.query_segments[b].tolist(), mask.key_segments[b].tolist()
        visible = [[q[t] == k[s] > 0 and not (mask.causal and s > t) for s in range(keys)] for t in range(queries)]
        for n in range(heads):
            g = n // (heads // groups)
            of_head = None if bias is None else bias[b, n], Score(score.func, *(array[n] for array in score.args))
            result[b, n] = reference_head(query[b, n], key[b, g], value[b, g], visible, *of_head)
    return result


def make_score(name, seed, width, heads=()):
    """The score of that name; ``heads`` is (N,) for the arrays of N heads."""
    function, learned = SCORES[name]
    return Score(function, *([normal(seed, *heads, *(width for _ in learned))] if learned else []))


@partial(jax.jit, static_argnames=("kernel", "device", "chunk"))
def differentiate(inputs, output_gradient, mask, *, kernel, device=None, chunk=chunked.CHUNK):
    """The output of ``attend(**inputs, …)`` and the gradients of everything in ``inputs``, by name.

    ``device`` is what to trace for; ``chunk`` is the size of the chunks, so that short rows have several.
    """

    def attended(inputs):
        return attend(**inputs, mask=mask, kernel=kernel)

    tracing = contextlib.nullcontext() if device is None else tracing_for(*device)
    with tracing, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunked, "CHUNK", chunk)
        output, pullback = jax.vjp(attended, inputs)
        return {"output": output, **pullback(output_gradient)[0]}


def packed(*lengths_of_rows, length):
    """``packed([3, 2], [4], length=6)``: segments of rows of sentences of these lengths, padding last."""
    numbers = [np.repeat(np.arange(1, len(lengths) + 1), lengths) for lengths in lengths_of_rows]
    return jnp.array([np.pad(row, (0, length - len(row))) for row in numbers], jnp.int32)


def lower(kernel, *shape, causal=True, dtype="float32", gradients=False):
    """A new jitted function, and what to lower it with.

    The function is the sum of what ``attend`` gives, or that and its gradients, of query, key, value and the segments
    of queries and keys; ``shape`` is (B, N, G, T, S, H, U).
    """
    batch, heads, groups, queries, keys, width, value_width = shape
    of_arrays = (heads, queries, width), (groups, keys, width), (groups, keys, value_width)
    arrays = [jax.ShapeDtypeStruct((batch, *of_array), dtype) for of_array in of_arrays]
    segments = [jax.ShapeDtypeStruct((batch, length), jnp.int32) for length in (queries, keys)]

    def total(query, key, value, query_segments, key_segments):
        mask = Mask(query_segments, key_segments, causal)
        return jnp.sum(attend(query, key, value, mask=mask, kernel=kernel).astype(jnp.float32))

    return jax.jit(jax.value_and_grad(total, (0, 1, 2)) if gradients else total), (*arrays, *segments)


def close(results, expected, dtype="float32"):
    """Everything of that name is near."""
    # A rounding to bfloat16 is 2⁻⁹ at most, relative to the largest number of an array. The weights, the gradients
    # of the scores and each result are rounded, and the sums of that have been seen to reach 6 roundings.
    of_dtype = {"float32": 1e-5, "bfloat16": 10 * 2**-9}[dtype]
    for name, arrays in expected.items():
        for result, exact in zip(jax.tree.leaves(results[name]), jax.tree.leaves(arrays), strict=True):
            result, exact = float64(result, exact)
            tolerance = of_dtype * max(1, np.abs(exact).max())
            np.testing.assert_allclose(result, exact, atol=tolerance, rtol=0, err_msg=name)
