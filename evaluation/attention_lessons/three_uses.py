"""Sections 7 and 9: the three uses of attention in an encoder-decoder, and other kernels on the same arrays."""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attention import attend
from evaluation.attention_lessons.several_heads import STEPS, Projections, Sublayer, apply_sublayer, unpadded
from evaluation.attention_lessons.text import aligned, code_block, matrix, number, side_by_side, sizes

SOURCE, TARGET = ["You", "are", "welcome", "</s>"], ["<s>", "De", "nada"]
WIDTH, SEED = 6, 8


class Use(NamedTuple):
    """One use of attention: the tokens of queries and keys, and every step."""

    title: str
    queries: list[str]
    keys: list[str]
    causal: bool
    steps: Sublayer


def draw_normal(name: int, *shape: int, deviation: float = 1.0) -> Array:
    """Normally distributed numbers of a seed, rounded to tenths so that they are the same everywhere."""
    key = jax.random.fold_in(jax.random.key(SEED), name)
    return jnp.round(deviation * jax.random.normal(key, shape), 1)


def draw_projections(first: int) -> Projections:
    """Four matrices whose deviation about preserves a vector's length."""
    return Projections(*(draw_normal(first + index, WIDTH, WIDTH, deviation=WIDTH**-0.5) for index in range(4)))


@cache
def uses() -> dict[str, Use]:
    """The attention sublayers of one encoder block and one decoder block, each added to its input.

    Norms, feed-forward networks and dropout are left out: ``model/transformer.py`` has them.
    """
    source, target = draw_normal(0, 1, len(SOURCE), WIDTH), draw_normal(1, 1, len(TARGET), WIDTH)
    encoder = apply_sublayer(source, source, draw_projections(10))
    memory = source + encoder.output
    decoder = apply_sublayer(target, target, draw_projections(20), causal=True)
    state = target + decoder.output
    encoder_decoder = apply_sublayer(state, memory, draw_projections(30))
    return {
        "encoder": Use("encoder self-attention", SOURCE, SOURCE, False, encoder),
        "decoder": Use("masked decoder self-attention", TARGET, TARGET, True, decoder),
        "encoder-decoder": Use("encoder-decoder attention", TARGET, SOURCE, False, encoder_decoder),
    }


def shapes_of_uses() -> str:
    """The shapes of every step of the three uses."""
    rows = [["", "axes", *uses()]]
    for step, *arrays in zip(STEPS, *(use.steps for use in uses().values()), strict=True):
        rows.append([*step, *map(sizes, arrays)])
    return code_block(aligned(rows, "   "))


def weights_of_use(name: str) -> str:
    """Both heads' weights in one of the three uses."""
    use = uses()[name]
    heads = enumerate(use.steps.weights[0], start=1)
    return code_block(side_by_side(*(matrix(f"head {head}", table, use.queries, use.keys) for head, table in heads)))


def kernels() -> str:
    """The largest difference between the heads of the definition and those of each kernel that runs anywhere."""
    rows = [["", *uses()]]
    for kernel in ("xla", "chunked"):
        row = [kernel]
        for use in uses().values():
            query, key, value = use.steps.query, use.steps.key, use.steps.value
            heads = attend(query, key, value, mask=unpadded(query, key, use.causal), kernel=kernel)
            row.append(number(jnp.abs(heads - use.steps.heads).max(), 5))
        rows.append(row)
    return code_block(aligned(rows, "    "))


BLOCKS = {
    "shapes-of-uses": shapes_of_uses,
    **{name: partial(weights_of_use, name) for name in ("encoder", "decoder", "encoder-decoder")},
    "kernels": kernels,
}
