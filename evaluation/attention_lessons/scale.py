"""Section 4: why scores are divided by √d_k, and what dividing by another number does.

T query position · S key position, each query with keys of its own · H width of a query/key head
"""

import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attention import dot_product, head_weights, scaled_dot_product, softmax_over_keys
from evaluation.attention_lessons.one_head import KEY, QUERY, softmax
from evaluation.attention_lessons.text import aligned, code_block, markdown_table, number

# With this seed, and that of three_uses.py, no printed number lies so close to a rounding boundary that another machine
# could print its neighbour; a test checks that.
SEED = 4
WIDTHS, QUERIES, KEYS = (4, 16, 64, 256), 4096, 16
ROW_LENGTHS, ROW_WIDTH, ROW_QUERIES = (4, 16, 64, 256, 1024), 64, 128


@cache
def softmax_statistics(
    width: int, score: Callable[..., Array]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, " T"], Float[Array, " T"]]:
    """The variance of random queries' scores, the mean of their largest weights, and two gradients of their weights.

    The gradients are Frobenius norms of Jacobians: with respect to a query's scores, and to the query itself.
    """

    def weigh(query: Array, key: Array) -> Array:
        return softmax(score(query, key))

    @jax.jit  # compiled as a whole: operation by operation takes several times longer
    def compute(query: Array, key: Array) -> tuple[Array, ...]:
        scores, weights = jax.vmap(score)(query, key), jax.vmap(weigh)(query, key)
        by_score, by_query = (
            jax.vmap(jax.jacobian(softmax))(scores),
            jax.vmap(jax.jacobian(weigh))(query, key),
        )
        return scores.var(), weights.max(axis=-1).mean(), norms(by_score), norms(by_query)

    return compute(*(vectors[..., :width] for vectors in random_rows(QUERIES, KEYS, max(WIDTHS))))


def norms(jacobians: Float[Array, "T *rest"]) -> Float[Array, " T"]:
    return jnp.sqrt((jacobians.reshape(len(jacobians), -1) ** 2).sum(axis=1))


@cache
def random_rows(queries: int, keys: int, width: int) -> tuple[Float[Array, "T 1 H"], Float[Array, "T S H"]]:
    """Queries, each with keys of its own, all components independent and standard normal."""
    query_seed, key_seed = jax.random.split(jax.random.key(SEED))
    return jax.random.normal(query_seed, (queries, 1, width)), jax.random.normal(key_seed, (queries, keys, width))


def scale() -> str:
    """A table for unscaled scores and one for scaled scores, with a row per width."""
    head = ["d_k", "variance", "largest weight"]
    head += [f"∂ weights / ∂ {what}, {kind}" for what in ("scores", "query") for kind in ("mean", "median")]
    parts = [f"{QUERIES} queries, each with {KEYS} keys of its own, all components standard normal."]
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
    rows = []
    for keys in ROW_LENGTHS:
        row = [str(keys)]
        for divisor in (ROW_WIDTH, keys):
            deviation, percentage = spread(query, key[:, :keys], math.sqrt(divisor))
            row += [number(deviation, 2), f"{number(percentage, 0)} %"]
        rows.append(row)
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


BLOCKS = {"scale": scale, "number-of-keys": number_of_keys, "padded-row": padded_row}
