"""Sections 1 to 3 and 5: one query, several queries, the shapes, and which keys a query sees.

T query position · S key position · H width of a query/key head · U width of a value head
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attention import attend_head, dot_product, head_weights, scaled_dot_product, softmax_over_keys, visible_keys
from evaluation.attention_lessons.text import (
    aligned,
    code_block,
    labelled,
    matrix,
    number,
    numbers,
    side_by_side,
    sizes,
)

# T = 3 queries and S = 2 keys of width H = 4, values of width U = 2.
QUERY = jnp.array([[1.0, 0, 2, 1], [0, 2, 0, 1], [-2, 1, 1, 2]])
KEY = jnp.array([[2.0, 1, 1, 0], [0, 1, 1, 0]])
VALUE = jnp.array([[10.0, 0], [0, 20]])
QUERIES, KEYS = ["query 1", "query 2", "query 3"], ["key 1", "key 2"]

# Section 5: scores of 16, 8 and 16, so scaled scores of 2, 1 and 2; the third key is to be hidden.
WIDE_QUERY = jnp.ones((1, 64))
WIDE_KEY = jnp.array([[1 / 4] * 64, [1 / 8] * 64, [1 / 4] * 64])


def softmax(scores: Float[Array, "T S"]) -> Float[Array, "T S"]:
    """The softmax over keys, all of which are visible."""
    return softmax_over_keys(scores, jnp.ones_like(scores, bool))


def attend_to_all(
    query: Float[Array, "T H"], key: Float[Array, "S H"], value: Float[Array, "S U"]
) -> tuple[Float[Array, "T S"], Float[Array, "T U"]]:
    """Weights and output of ``attend_head`` when every query sees every key."""
    visible = jnp.ones((len(query), len(key)), bool)
    return head_weights(query, key, visible), attend_head(query, key, value, visible)


def one_query() -> str:
    """The first query, step by step; the last line is the output of ``attend_head``."""
    query = QUERY[:1]
    [products], [scores] = dot_product(query, KEY), scaled_dot_product(query, KEY)
    [weights], [output] = attend_to_all(query, KEY, VALUE)
    steps = [
        ["", *KEYS],
        ["key", *(numbers(key, 0) for key in KEY)],
        ["value", *(numbers(value, 0) for value in VALUE)],
        ["query · key", *map(number, products)],
        ["divided by √4", *map(number, scores)],
        ["exp", *(number(math.exp(score)) for score in scores)],
        ["weight: exp / sum of both", *map(number, weights)],
        ["weight × value", *map(numbers, weights[:, None] * VALUE)],
    ]
    return code_block(
        f"query  {numbers(query[0], 0)}", aligned(steps, "     "), f"output, their sum  {numbers(output)}"
    )


def several_queries() -> str:
    """Scores, weights and outputs of three queries."""
    weights, output = attend_to_all(QUERY, KEY, VALUE)
    scores = matrix("scores", scaled_dot_product(QUERY, KEY), QUERIES, KEYS)
    return code_block(
        side_by_side(matrix("query", QUERY, QUERIES, digits=0), scores),
        side_by_side(matrix("weights", weights, QUERIES, KEYS), matrix("output", output, QUERIES)),
    )


def wrong_axis() -> str:
    """The softmax over keys next to the softmax over queries, each with the sums of its rows."""
    scores = scaled_dot_product(QUERY, KEY)
    tables = []
    for title, weights in (("over keys", softmax(scores)), ("over queries", softmax(scores.T).T)):
        with_sums = jnp.concatenate([weights, weights.sum(axis=1, keepdims=True)], axis=1)
        tables.append(matrix(title, with_sums, QUERIES, [*KEYS, "sum"]))
    return code_block(side_by_side(*tables))


def shapes() -> str:
    """Any T, S and U will do: the shapes of ``attend_head``'s arguments and result for some of them."""
    rows = [["T", "S", "H", "U", "query", "key", "weights", "value", "output"]]
    for queries, keys, width, value_width in ((3, 2, 4, 2), (1, 5, 4, 3), (5, 1, 4, 1)):
        query, key, value = jnp.ones((queries, width)), jnp.ones((keys, width)), jnp.ones((keys, value_width))
        weights, output = attend_to_all(query, key, value)
        arrays = query, key, weights, value, output
        rows.append([*map(str, (queries, keys, width, value_width)), *map(sizes, arrays)])
    return code_block(aligned(rows, "    "))


def visible() -> str:
    """A padded row: every query sees the whole sentence or, if causal, only what is not later."""
    tokens, segments = ["De", "nada", "</s>", "pad"], jnp.array([1, 1, 1, 0])
    tables = []
    for causal in (False, True):
        is_visible = np.asarray(visible_keys(segments, segments, causal=causal))
        tables.append(labelled(f"causal={causal}", np.where(is_visible, "1", "·").tolist(), tokens, tokens))
    return code_block(f"segments  {' '.join(map(str, segments))}", side_by_side(*tables))


def finite_mask() -> str:
    """Weights of three keys, the third hidden by a finite number before or after scaling, or by being invisible."""
    rows = [["third key masked by", "before scaling", "after scaling"]]
    for name, mask in (("adding -10", -10.0), ("adding -100", -100.0), ("adding -1e9", -1e9)):
        third = jnp.array([[0, 0, mask]])
        before = (dot_product(WIDE_QUERY, WIDE_KEY) + third) / math.sqrt(64)
        after = scaled_dot_product(WIDE_QUERY, WIDE_KEY) + third
        rows.append([name, *(numbers(softmax(scores)[0]) for scores in (before, after))])
    hidden = head_weights(WIDE_QUERY, WIDE_KEY, jnp.array([[True, True, False]]))
    rows.append(["being invisible", *[numbers(hidden[0])] * 2])
    return code_block(aligned(rows, "     "))


def sees_nothing() -> str:
    """A query whose keys are all masked: by a large number, by minus infinity, and by this repository."""
    scores, nothing = scaled_dot_product(WIDE_QUERY, WIDE_KEY), jnp.zeros((1, 3), bool)
    value = jnp.array([[1.0], [2.0], [3.0]])
    rows = [["every key masked by", "weights", "output"]]
    for name, weights in (
        ("adding -1e9", jax.nn.softmax(scores - 1e9)),
        ("adding -∞", jax.nn.softmax(scores - jnp.inf)),
        ("being invisible", head_weights(WIDE_QUERY, WIDE_KEY, nothing)),
    ):
        rows.append([name, numbers(weights[0]), number((weights @ value)[0, 0])])
    gradient = jax.grad(lambda query: attend_head(query, WIDE_KEY, value, nothing).sum())(WIDE_QUERY)
    largest = number(jnp.abs(gradient).max())
    return code_block(aligned(rows, "     "), f"largest gradient of the last output by the query  {largest}")


BLOCKS = {
    "one-query": one_query,
    "several-queries": several_queries,
    "wrong-axis": wrong_axis,
    "shapes": shapes,
    "visible": visible,
    "finite-mask": finite_mask,
    "sees-nothing": sees_nothing,
}
