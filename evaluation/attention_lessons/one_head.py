"""Sections 1 to 5: one query, several queries, shapes, why scores are divided by √d_k, and which keys a query sees.

T query position · S key position · H width of a query/key head · U width of a value head
"""

import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attention.head import attend_head, head_weights, softmax_over_keys
from attention.masks import visible_keys
from attention.scores import dot_product, scaled_dot_product
from evaluation.attention_lessons.text import aligned, beside, code_block, markdown_table, matrix, number, sizes

# T = 3 queries and S = 2 keys of width H = 4, values of width U = 2.
QUERY = jnp.array([[1.0, 0, 2, 1], [0, 2, 0, 1], [-2, 1, 1, 2]])
KEY = jnp.array([[2.0, 1, 1, 0], [0, 1, 1, 0]])
VALUE = jnp.array([[10.0, 0], [0, 20]])
QUERIES, KEYS = ["query 1", "query 2", "query 3"], ["key 1", "key 2"]

# Section 5: scores of 16, 8 and 16, so scaled scores of 2, 1 and 2; the third key is to be hidden.
WIDE_QUERY = jnp.ones((1, 64))
WIDE_KEY = jnp.array([[1 / 4] * 64, [1 / 8] * 64, [1 / 4] * 64])

# With this seed and that of several_heads.py, no printed number is so close to a rounding boundary that another machine
# could print its neighbour; a test checks that.
SEED = 4
WIDTHS, DRAWN_QUERIES, DRAWN_KEYS = (4, 16, 64, 256), 4096, 16
ROW_LENGTHS, ROW_WIDTH, ROW_QUERIES = (4, 16, 64, 256, 1024), 64, 128


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
        ["key", *(number(key, 0) for key in KEY)],
        ["value", *(number(value, 0) for value in VALUE)],
        ["query · key", *map(number, products)],
        ["divided by √4", *map(number, scores)],
        ["exp", *(number(math.exp(score)) for score in scores)],
        ["weight: exp / sum of both", *map(number, weights)],
        ["weight × value", *map(number, weights[:, None] * VALUE)],
    ]
    sum_of_values = f"output, their sum  {number(output)}"
    return code_block(f"query  {number(query[0], 0)}", aligned(steps, "     "), sum_of_values)


def several_queries() -> str:
    weights, output = attend_to_all(QUERY, KEY, VALUE)
    scores = matrix("scores", scaled_dot_product(QUERY, KEY), QUERIES, KEYS)
    return code_block(
        beside(matrix("query", QUERY, QUERIES, digits=0), scores),
        beside(matrix("weights", weights, QUERIES, KEYS), matrix("output", output, QUERIES)),
    )


def wrong_axis() -> str:
    """The softmax over keys next to the softmax over queries, each with the sums of its rows."""
    scores = scaled_dot_product(QUERY, KEY)
    tables = []
    for title, weights in (("over keys", softmax(scores)), ("over queries", softmax(scores.T).T)):
        with_sums = jnp.concatenate([weights, weights.sum(axis=1, keepdims=True)], axis=1)
        tables.append(matrix(title, with_sums, QUERIES, [*KEYS, "sum"]))
    return code_block(beside(*tables))


def shapes() -> str:
    """Any T, S and U will do: the shapes of ``attend_head``'s arguments and result for some of them."""
    rows = [["T", "S", "H", "U", "query", "key", "weights", "value", "output"]]
    for queries, keys, width, value_width in ((3, 2, 4, 2), (1, 5, 4, 3), (5, 1, 4, 1)):
        query, key, value = jnp.ones((queries, width)), jnp.ones((keys, width)), jnp.ones((keys, value_width))
        weights, output = attend_to_all(query, key, value)
        rows.append([*map(str, (queries, keys, width, value_width)), *map(sizes, (query, key, weights, value, output))])
    return code_block(aligned(rows, "    "))


@cache
def softmax_statistics(
    width: int, score: Callable[..., Array]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " T"], Float[Array, " T"]]:
    """The variance of random queries' scores, the mean of their largest weights, and two gradients of each query.

    The gradients are Frobenius norms of the weights' Jacobians: by the query's scores, and by the query itself.
    """

    def weigh(query: Array, key: Array) -> Array:
        return softmax(score(query, key))

    @jax.jit  # compiled as a whole: operation by operation takes several times longer
    def compute(query: Array, key: Array) -> tuple[Array, ...]:
        scores, weights = jax.vmap(score)(query, key), jax.vmap(weigh)(query, key)
        by_score, by_query = jax.vmap(jax.jacobian(softmax))(scores), jax.vmap(jax.jacobian(weigh))(query, key)
        norms = (jnp.sqrt((each.reshape(len(each), -1) ** 2).sum(axis=1)) for each in (by_score, by_query))
        return scores.var(), weights.max(axis=-1).mean(), *norms

    return compute(*(vectors[..., :width] for vectors in random_rows(DRAWN_QUERIES, DRAWN_KEYS, max(WIDTHS))))


@cache
def random_rows(queries: int, keys: int, width: int) -> tuple[Float[Array, "T 1 H"], Float[Array, "T S H"]]:
    """Queries, each with keys of its own, all components independent and standard normal."""
    query_seed, key_seed = jax.random.split(jax.random.key(SEED))
    return jax.random.normal(query_seed, (queries, 1, width)), jax.random.normal(key_seed, (queries, keys, width))


def scale() -> str:
    """A table for unscaled scores and one for scaled scores, with a row per width."""
    head = ["d_k", "variance", "largest weight"]
    head += [f"∂ weights / ∂ {what}, {kind}" for what in ("scores", "query") for kind in ("mean", "median")]
    parts = [f"{DRAWN_QUERIES} queries, each with {DRAWN_KEYS} keys of its own, all components standard normal."]
    for title, score in (("Scores q·k:", dot_product), ("Scores q·k / √d_k:", scaled_dot_product)):
        rows = []
        for width in WIDTHS:
            variance, largest_weight, *gradients = softmax_statistics(width, score)
            averages = [number(average(gradient)) for gradient in gradients for average in (np.mean, np.median)]
            rows.append([str(width), number(variance, 2), number(largest_weight), *averages])
        parts += [title, markdown_table(head, rows)]
    return "\n\n".join(parts)


def number_of_keys() -> str:
    """Dividing by √d_k and by √n: the spread of scores, and the share of the keys that the weights spread over."""
    head = ["keys n", "q·k / √d_k: std", "keys in use", "q·k / √n: std", "keys in use"]
    query, key = random_rows(ROW_QUERIES, max(ROW_LENGTHS), ROW_WIDTH)
    rows = [[str(keys)] for keys in ROW_LENGTHS]
    for keys, row in zip(ROW_LENGTHS, rows, strict=True):
        for divisor in (ROW_WIDTH, keys):
            deviation, percentage = spread(query, key[:, :keys], math.sqrt(divisor))
            row += [number(deviation, 2), f"{number(percentage, 0)} %"]
    return markdown_table(head, rows)


@jax.jit
def spread(query: Float[Array, "T 1 H"], key: Float[Array, "T S H"], divisor: Float[Array, ""]) -> Float[Array, " 2"]:
    """The scores' standard deviation, and exp(entropy) of the weights as a percentage of all keys."""
    scores = jax.vmap(dot_product)(query, key)[:, 0] / divisor
    entropy = jax.scipy.special.entr(softmax(scores)).sum(axis=-1)
    return jnp.array([scores.std(), 100 * jnp.exp(entropy).mean() / scores.shape[1]])


def padded_row() -> str:
    """The first query's weights in a row of 2 keys and in one padded to 9, divided by √d_k and by √n."""
    rows = [["", "/ √d_k: key 1", "key 2", "/ √n: key 1", "key 2"]]
    for title, padding in (("row of 2 keys", 0), ("the same, padded to 9", 7)):
        key = jnp.pad(KEY, [(0, padding), (0, 0)])
        visible = jnp.arange(2 + padding)[None] < 2
        by_width = head_weights(QUERY[:1], key, visible)
        by_keys = softmax_over_keys(dot_product(QUERY[:1], key) / math.sqrt(2 + padding), visible)
        rows.append([title, *map(number, [*by_width[0, :2], *by_keys[0, :2]])])
    return code_block(aligned(rows, "    "))


def visible() -> str:
    """A padded row: every query sees the whole sentence or, if causal, only what is not later."""
    tokens, segments = ["De", "nada", "</s>", "pad"], jnp.array([1, 1, 1, 0])
    tables = []
    for causal in (False, True):
        marks = np.where(visible_keys(segments, segments, causal=causal), "1", "·").tolist()
        rows = ([token, *row] for token, row in zip(tokens, marks, strict=True))
        tables.append(aligned([[f"causal={causal}", *tokens], *rows]))
    return code_block(f"segments  {' '.join(map(str, segments))}", beside(*tables))


def finite_mask() -> str:
    """Weights of three keys, the third hidden by a finite number before or after scaling, or by being invisible."""
    rows = [["third key masked by", "before scaling", "after scaling"]]
    for mask in ("-10", "-100", "-1e9"):
        third = jnp.array([[0, 0, float(mask)]])
        before = (dot_product(WIDE_QUERY, WIDE_KEY) + third) / math.sqrt(64)
        after = scaled_dot_product(WIDE_QUERY, WIDE_KEY) + third
        rows.append([f"adding {mask}", *(number(softmax(scores)[0]) for scores in (before, after))])
    hidden = head_weights(WIDE_QUERY, WIDE_KEY, jnp.array([[True, True, False]]))
    rows.append(["being invisible", *[number(hidden[0])] * 2])
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
        rows.append([name, number(weights[0]), number((weights @ value)[0, 0])])
    gradient = jax.grad(lambda query: attend_head(query, WIDE_KEY, value, nothing).sum())(WIDE_QUERY)
    largest = f"largest gradient of the last output by the query  {number(jnp.abs(gradient).max())}"
    return code_block(aligned(rows, "     "), largest)


BLOCKS = [one_query, several_queries, wrong_axis, shapes, scale, number_of_keys, padded_row]
BLOCKS += [visible, finite_mask, sees_nothing]
