"""Section 5: which keys a query sees, and what becomes of a query that sees none."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attention import attend_head, dot_product, head_weights, scaled_dot_product, visible_keys
from evaluation.attention_lessons.one_head import softmax
from evaluation.attention_lessons.text import aligned, code_block, labelled, number, numbers, side_by_side

# Scores of 16, 8 and 16, so scaled scores of 2, 1 and 2; the third key is to be hidden.
QUERY = jnp.ones((1, 64))
KEY = jnp.array([[1 / 4] * 64, [1 / 8] * 64, [1 / 4] * 64])


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
        before = (dot_product(QUERY, KEY) + third) / math.sqrt(64)
        after = scaled_dot_product(QUERY, KEY) + third
        rows.append([name, *(numbers(softmax(scores)[0]) for scores in (before, after))])
    hidden = head_weights(QUERY, KEY, jnp.array([[True, True, False]]))
    rows.append(["being invisible", *[numbers(hidden[0])] * 2])
    return code_block(aligned(rows, "     "))


def sees_nothing() -> str:
    """A query whose keys are all masked: by a large number, by minus infinity, and by this repository."""
    scores, nothing = scaled_dot_product(QUERY, KEY), jnp.zeros((1, 3), bool)
    value = jnp.array([[1.0], [2.0], [3.0]])
    rows = [["every key masked by", "weights", "output"]]
    for name, weights in (
        ("adding -1e9", jax.nn.softmax(scores - 1e9)),
        ("adding -∞", jax.nn.softmax(scores - jnp.inf)),
        ("being invisible", head_weights(QUERY, KEY, nothing)),
    ):
        rows.append([name, numbers(weights[0]), number((weights @ value)[0, 0])])
    gradient = jax.grad(lambda query: attend_head(query, KEY, value, nothing).sum())(QUERY)
    largest = number(jnp.abs(gradient).max())
    return code_block(aligned(rows, "     "), f"largest gradient of the last output by the query  {largest}")


BLOCKS = {"visible": visible, "finite-mask": finite_mask, "sees-nothing": sees_nothing}
