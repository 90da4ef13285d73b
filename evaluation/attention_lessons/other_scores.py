"""Section 8: other scores, and what they cost on this machine."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attention import SCALED_DOT_PRODUCT, Score, additive, attend, dot_product, general
from evaluation.attention_lessons.one_head import KEY, QUERY, softmax
from evaluation.attention_lessons.several_heads import unpadded
from evaluation.attention_lessons.text import aligned, code_block, markdown_table, number
from evaluation.attention_lessons.three_uses import draw_normal

LENGTHS, (BATCH, HEADS, WIDTH), TURNS = (16, 64, 128, 256), (4, 4, 64), 15


def scores() -> str:
    """The first query under four scores."""
    swap = jnp.eye(4)[jnp.array([1, 0, 2, 3])]
    rows = [["", "score: key 1", "key 2", "weight: key 1", "key 2"]]
    for name, score in (
        ("dot            q·k", Score(dot_product)),
        ("scaled dot     q·k / √d_k", SCALED_DOT_PRODUCT),
        ("general        qᵀ W k", Score(general, swap)),
        ("additive       v·tanh(q + k)", Score(additive, jnp.ones(4))),
    ):
        found = score(QUERY[:1], KEY)
        rows.append([name, *map(number, [*found[0], *softmax(found)[0]])])
    return code_block(aligned(rows, "    "))


def cost(machine: str) -> str:
    """Time and memory of additive against scaled dot-product attention, measured on this machine."""
    costs = np.array([measure(length) for length in LENGTHS])
    setting = f"B = {BATCH}, N = {HEADS}, H = U = {WIDTH}, T = S as below, float32, on {machine}."
    return "\n\n".join(
        [
            f"{setting} Medians of {TURNS} turns, in each of which every function runs once. Milliseconds:",
            cost_table(costs[..., 0]),
            "MiB that the compiled function needs beside its arguments and results (XLA's `temp_size_in_bytes`):",
            cost_table(costs[..., 1]),
        ]
    )


def cost_table(costs: Float[np.ndarray, "lengths functions"]) -> str:
    head = ["T = S", "forward: dot", "additive", "ratio", "forward + backward: dot", "additive", "ratio"]
    rows = []
    for length, (dot, dot_both, add, add_both) in zip(LENGTHS, costs, strict=True):
        rows.append([str(length), number(dot, 2), number(add, 2), number(add / dot, 1)])
        rows[-1] += [number(dot_both, 2), number(add_both, 2), number(add_both / dot_both, 1)]
    return markdown_table(head, rows)


def measure(length: int) -> list[tuple[float, float]]:
    """Milliseconds and MiB of the dot product, forward and with gradients, and of the additive score likewise.

    The functions take turns, so that a disturbance of the machine affects all of them. Gradients are those of all
    arrays, the score's too.
    """
    query, key, value = (draw_normal(40 + index, BATCH, HEADS, length, WIDTH) for index in range(3))
    mask = unpadded(query, key, causal=False)

    def forward(query: Array, key: Array, value: Array, score: Score) -> Array:
        return attend(query, key, value, mask=mask, score=score).sum()

    runs = []
    for score in (SCALED_DOT_PRODUCT, Score(additive, draw_normal(43, HEADS, WIDTH))):
        for function in (forward, jax.grad(forward, argnums=(0, 1, 2, 3))):
            arguments = query, key, value, score
            compiled = jax.jit(function).lower(*arguments).compile()
            jax.block_until_ready(compiled(*arguments))
            runs.append((compiled, arguments))
    seconds = np.empty((TURNS, len(runs)))
    for turn, run in np.ndindex(seconds.shape):
        compiled, arguments = runs[run]
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        seconds[turn, run] = time.perf_counter() - start
    analyses: list[Any] = [compiled.memory_analysis() for compiled, _ in runs]
    mebibytes = [analysis.temp_size_in_bytes / 2**20 for analysis in analyses]
    return list(zip((1000 * np.median(seconds, axis=0)).tolist(), mebibytes, strict=True))


BLOCKS = {"scores": scores}
