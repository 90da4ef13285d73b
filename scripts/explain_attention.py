"""The numbers and pictures of docs/attention.md: python scripts/explain_attention.py writes them anew.

That page's prose is written by hand. What stands in it between <!-- begin NAME --> and <!-- end NAME --> is printed by
the function of that NAME in BLOCKS below, out of this repository's own attention; docs/attention-*.png are drawn by
those in PICTURES. To try another example, change its arrays here and run the script.
"""

import argparse
import math
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from attention import (
    SCALED_DOT_PRODUCT,
    Score,
    additive,
    attend,
    attend_head,
    dot_product,
    general,
    scaled_dot_product,
    softmax_over_keys,
    visible_keys,
    weigh,
    weigh_head,
)
from benchmarks.machine import processor
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from evaluation.attention_view.heatmaps import COLOURS
from training.run.environment import environment

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "attention.md"

# Sections 1 to 3: T = 3 queries and S = 2 keys of width H = 4, values of width U = 2.
QUERY = jnp.array([[1.0, 0, 2, 1], [0, 2, 0, 1], [-2, 1, 1, 2]])
KEY = jnp.array([[2.0, 1, 1, 0], [0, 1, 1, 0]])
VALUE = jnp.array([[10.0, 0], [0, 20]])
QUERIES, KEYS = ["query 1", "query 2", "query 3"], ["key 1", "key 2"]

# Section 4: what is drawn from a standard normal distribution, and how much of it. With this seed, and section 7's, no
# number lies so near to where rounding turns that another machine could print the next one; a test watches over that.
DRAWN_SEED = 4
WIDTHS, DRAWN_QUERIES, DRAWN_KEYS = (4, 16, 64, 256), 4096, 16
ROW_LENGTHS, ROW_WIDTH, ROW_QUERIES = (4, 16, 64, 256, 1024), 64, 128

# Section 5: scores of 16, 8 and 16, so scaled ones of 2, 1 and 2, and the third key is not to be seen.
WIDE_QUERY = jnp.ones((1, 64))
WIDE_KEY = jnp.array([[1 / 4] * 64, [1 / 8] * 64, [1 / 4] * 64])

# Section 6: two words of width D = 4 through N = 2 heads of width H = 4. Columns 0 to 3 of a matrix are head 1's.
WORDS = ["De", "nada"]
WORD_VECTORS = jnp.array([[2.0, 0, 1, 1], [0, 2, -1, 2]])
TO_QUERY = jnp.array(
    [[1.0, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 0, -1], [0, 0, 1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1, 0, 1]]
)
TO_KEY = jnp.array(
    [[0.0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0, 0], [0, 1, 0, -1, 0, 0, -1, 0]]
)
TO_VALUE = jnp.array(
    [[1.0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0]]
)
TO_OUTPUT = jnp.array(
    [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, -1], [0, 1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0]]
)

# Section 7: the width-6 model with two heads of width 3.
SOURCE, TARGET = ["You", "are", "welcome", "</s>"], ["<s>", "De", "nada"]
WIDTH, HEADS, SEED = 6, 2, 8

# Sections 5 and 7 in pictures: two sentence pairs packed into one row on each side, the rest of it padding.
PACKED_SOURCE = [*SOURCE, "Thanks", "</s>", "pad", "pad"]
PACKED_TARGET = [*TARGET, "<s>", "Gracias", "pad"]
SOURCE_SEGMENTS, TARGET_SEGMENTS = jnp.array([1, 1, 1, 1, 2, 2, 0, 0]), jnp.array([1, 1, 1, 2, 2, 0])

# Section 8: what --measure compares.
LENGTHS, MEASURED_SHAPE, TURNS = (16, 64, 128, 256), (4, 4, 64), 15

BLUE, ORANGE, LIGHT = "#2b5c8a", "#e07b39", "#ececec"
SEGMENT_COLOURS = ListedColormap([LIGHT, "#8fbbdb", "#f7b97f"])  # invisible, and the two sentences


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--check", action="store_true", help="write nothing: exit code 1 if the page's numbers are not the script's"
    )
    choice.add_argument(
        "--measure",
        action="store_true",
        help="measure time and memory of section 8 on this machine as well (a minute or two; let nothing else run)",
    )
    arguments = parser.parse_args()
    with exit_on_user_error():
        check() if arguments.check else explain(BLOCKS | MEASURED if arguments.measure else BLOCKS)


def check() -> None:
    """Exit with 1 if the page has other numbers than the script, and name their blocks."""
    differing = stale_blocks()
    if differing:
        sys.exit(f"{PAGE.name} is not what scripts/explain_attention.py prints: {', '.join(differing)}")
    print(f"{PAGE.name} has the script's numbers")


def explain(blocks: dict[str, Callable[[], str]]) -> None:
    """Write the blocks into the page, and the pictures beside it."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in printed(blocks).items():
        page = with_block(page, name, text)
    write_atomically(PAGE, page)
    for name, draw in PICTURES.items():
        write_atomically(DOCS / name, png(draw()))
        print(f"written  docs/{name}")
    print(f"written  docs/{PAGE.name}")


def stale_blocks() -> list[str]:
    """Names of the blocks in which the page differs from the script; measured ones are not compared."""
    page = PAGE.read_text(encoding="utf-8")
    return [name for name, text in printed(BLOCKS).items() if block_of(page, name) != text]


def printed(blocks: dict[str, Callable[[], str]]) -> dict[str, str]:
    """What each block's function prints, in float32 throughout, whatever the device."""
    with jax.default_matmul_precision("float32"):
        return {name: block() for name, block in blocks.items()}


def block_of(page: str, name: str) -> str:
    """What the page has between the marks of ``name``; UserError unless they are there once."""
    found = re.findall(rf"<!-- begin {name} -->\n\n(.*?)\n\n<!-- end {name} -->", page, re.DOTALL)
    if len(found) != 1:
        raise UserError(f"docs/{PAGE.name} needs <!-- begin {name} --> and <!-- end {name} --> once, not {len(found)}")
    return found[0]


def with_block(page: str, name: str, text: str) -> str:
    """The page with other text between the marks of ``name``."""
    begin, end = f"<!-- begin {name} -->\n\n", f"\n\n<!-- end {name} -->"
    return page.replace(f"{begin}{block_of(page, name)}{end}", f"{begin}{text}{end}")


# How numbers are printed.


def number(value: Any, digits: int = 3) -> str:
    """With so many decimals; what rounds to zero has no sign."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def numbers(values: Float[Array, " values"], digits: int = 3) -> str:
    return "  ".join(number(value, digits) for value in np.asarray(values))


def grid(rows: Sequence[Sequence[str]], gap: str = "  ") -> str:
    """Rows of words in columns, the first flush left and the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return "\n".join(gap.join(line).rstrip() for line in lines)


def matrix(
    title: str, values: Float[Array, "rows columns"], rows: Sequence[str], columns: Sequence[str] = (), digits: int = 3
) -> str:
    """Numbers beside the names of their rows and, if they have any, under those of their columns."""
    cells = [[number(value, digits) for value in row] for row in np.asarray(values)]
    body = [[name, *row] for name, row in zip(rows, cells, strict=True)]
    return grid([[title, *columns], *body]) if columns else f"{title}\n{grid(body)}"


def marks(title: str, visible: Bool[Array, "T S"], rows: Sequence[str], columns: Sequence[str]) -> str:
    """1 where a query sees a key and a point where not."""
    cells = [["1" if seen else "·" for seen in row] for row in np.asarray(visible)]
    return grid([[title, *columns], *([name, *row] for name, row in zip(rows, cells, strict=True))])


def beside(*parts: str) -> str:
    """Blocks of as many lines each, from left to right."""
    lines = [part.split("\n") for part in parts]
    widths = [max(map(len, part)) for part in lines]
    return "\n".join("     ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*lines, strict=True))


def fenced(*parts: str) -> str:
    return "\n".join(["```text", "\n\n".join(parts), "```"])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of numbers as GitHub shows one."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---:"] * len(head), *rows])


def shape(array: Array) -> str:
    return " × ".join(map(str, array.shape))


# 1 to 3: one query, several queries, and the shapes.


def all_visible(queries: int, keys: int) -> Bool[Array, "T S"]:
    return jnp.ones((queries, keys), bool)


def one_query() -> str:
    """The first query, step by step: what ``attend_head`` does with it, the last line by ``attend_head``."""
    query, visible = QUERY[:1], all_visible(1, 2)
    products, scores = dot_product(query, KEY)[0], scaled_dot_product(query, KEY)[0]
    weights, output = weigh_head(query, KEY, visible)[0], attend_head(query, KEY, VALUE, visible)[0]
    steps = [
        ["", "key 1", "key 2"],
        ["key", *(numbers(key, 0) for key in KEY)],
        ["value", *(numbers(value, 0) for value in VALUE)],
        ["query · key", *map(number, products)],
        ["divided by √4", *map(number, scores)],
        ["exp", *(number(math.exp(score)) for score in scores)],
        ["weight: exp / sum of both", *map(number, weights)],
        ["weight × value", *map(numbers, weights[:, None] * VALUE)],
    ]
    return fenced(f"query  {numbers(query[0], 0)}", grid(steps, "     "), f"output, their sum  {numbers(output)}")


def several_queries() -> str:
    """Scores, weights and outputs of three queries."""
    visible = all_visible(3, 2)
    scores, weights = scaled_dot_product(QUERY, KEY), weigh_head(QUERY, KEY, visible)
    output = attend_head(QUERY, KEY, VALUE, visible)
    return fenced(
        beside(matrix("query", QUERY, QUERIES, digits=0), matrix("scores", scores, QUERIES, KEYS)),
        beside(matrix("weights", weights, QUERIES, KEYS), matrix("output", output, QUERIES)),
    )


def wrong_axis() -> str:
    """The softmax over keys, and beside it the one over queries."""
    scores = scaled_dot_product(QUERY, KEY)
    right = softmax_over_keys(scores, all_visible(3, 2))
    wrong = softmax_over_keys(scores.T, all_visible(2, 3)).T
    titles = {"over keys": right, "over queries": wrong}
    return fenced(beside(*(with_sums(title, weights) for title, weights in titles.items())))


def with_sums(title: str, weights: Float[Array, "T S"]) -> str:
    """Weights, and what they sum to in each row."""
    with_sum = jnp.concatenate([weights, weights.sum(axis=1, keepdims=True)], axis=1)
    return matrix(title, with_sum, QUERIES, [*KEYS, "sum"])


def shapes() -> str:
    """Any T, S and U will do: shapes of ``attend_head``'s arguments and result for some."""
    rows = [["T", "S", "H", "U", "query", "key", "weights", "value", "output"]]
    for queries, keys, width, value_width in ((3, 2, 4, 2), (1, 5, 4, 3), (5, 1, 4, 1)):
        query, key = jnp.ones((queries, width)), jnp.ones((keys, width))
        value, visible = jnp.ones((keys, value_width)), all_visible(queries, keys)
        arrays = query, key, weigh_head(query, key, visible), value, attend_head(query, key, value, visible)
        rows.append([*map(str, (queries, keys, width, value_width)), *map(shape, arrays)])
    return fenced(grid(rows, "    "))


# 4: why the scale.


class Study(NamedTuple):
    """Statistics over random queries: of their scores, and of the softmax over their keys."""

    variance: Float[Array, ""]
    largest_weight: Float[Array, ""]
    score_gradient: Float[Array, " T"]
    query_gradient: Float[Array, " T"]


@cache
def study(width: int, score: Callable[..., Array]) -> Study:
    """Queries and keys of independent standard normal components; each query has keys of its own.

    The gradients are Frobenius norms of Jacobians of a query's weights: with respect to its scores, and to itself.
    """
    visible = all_visible(1, DRAWN_KEYS)
    of_scores = partial(softmax_over_keys, visible=visible)
    of_query = partial(weigh_head, visible=visible, score=Score(score))

    @jax.jit  # compiled as a whole: operation by operation takes several times longer
    def statistics(query: Array, key: Array) -> Study:
        scores, weights = jax.vmap(score)(query, key), jax.vmap(of_query)(query, key)
        by_score = jax.vmap(jax.jacobian(of_scores))(scores)
        by_query = jax.vmap(jax.jacobian(of_query))(query, key)
        return Study(scores.var(), weights.max(axis=-1).mean(), norms(by_score), norms(by_query))

    return statistics(*(rows[..., :width] for rows in random_rows(DRAWN_QUERIES, DRAWN_KEYS, max(WIDTHS))))


def norms(jacobians: Float[Array, "T *rest"]) -> Float[Array, " T"]:
    return jnp.sqrt((jacobians.reshape(len(jacobians), -1) ** 2).sum(axis=1))


@cache
def random_rows(rows: int, keys: int, width: int) -> tuple[Float[Array, "T 1 H"], Float[Array, "T S H"]]:
    """Queries, each with keys of its own, all components independent and standard normal."""
    query_seed, key_seed = jax.random.split(jax.random.key(DRAWN_SEED))
    return jax.random.normal(query_seed, (rows, 1, width)), jax.random.normal(key_seed, (rows, keys, width))


def scale() -> str:
    """The study of unscaled and of scaled scores, one table each."""
    head = ["d_k", "variance", "largest weight"]
    head += [f"∂ weights / ∂ {what}, {kind}" for what in ("scores", "query") for kind in ("mean", "median")]
    parts = [f"{DRAWN_QUERIES} queries, each with {DRAWN_KEYS} keys of its own, all components standard normal."]
    for title, score in (("Scores q·k:", dot_product), ("Scores q·k / √d_k:", scaled_dot_product)):
        parts += [title, markdown(head, [[str(width), *cells_of(study(width, score))] for width in WIDTHS])]
    return "\n\n".join(parts)


def cells_of(found: Study) -> list[str]:
    gradients = found.score_gradient, found.query_gradient
    averages = [number(average(gradient)) for gradient in gradients for average in (np.mean, np.median)]
    return [number(found.variance, 2), number(found.largest_weight), *averages]


def number_of_keys() -> str:
    """Dividing by √d_k and by √n: the spread of scores, and over how large a part of the keys the weights spread."""
    head = ["keys n", "q·k / √d_k: std", "keys in use", "q·k / √n: std", "keys in use"]
    rows = []
    query, key = random_rows(ROW_QUERIES, max(ROW_LENGTHS), ROW_WIDTH)
    for keys in ROW_LENGTHS:
        found = [spread(query, key[:, :keys], math.sqrt(divisor)) for divisor in (ROW_WIDTH, keys)]
        cells = [[number(deviation, 2), f"{number(in_use, 0)} %"] for deviation, in_use in found]
        rows.append([str(keys), *cells[0], *cells[1]])
    return markdown(head, rows)


@jax.jit
def spread(query: Float[Array, "T 1 H"], key: Float[Array, "T S H"], divisor: float) -> Float[Array, " 2"]:
    """The scores' standard deviation, and exp(entropy) of the weights as a percentage of all keys."""
    scores = jax.vmap(dot_product)(query, key)[:, 0] / divisor
    weights = softmax_over_keys(scores, all_visible(*scores.shape))
    entropy = jax.scipy.special.entr(weights).sum(axis=-1)
    return jnp.array([scores.std(), 100 * jnp.exp(entropy).mean() / scores.shape[1]])


def padded_row() -> str:
    """The first query's weights in a row of 2 keys, and in one padded to 9, divided by √d_k and by √n."""
    rows = []
    for title, padding in (("row of 2 keys", 0), ("the same, padded to 9", 7)):
        key = jnp.pad(KEY, [(0, padding), (0, 0)])
        visible = jnp.arange(2 + padding)[None] < 2
        by_width = weigh_head(QUERY[:1], key, visible)
        by_keys = softmax_over_keys(dot_product(QUERY[:1], key) / math.sqrt(2 + padding), visible)
        rows.append([title, *map(number, [*by_width[0, :2], *by_keys[0, :2]])])
    return fenced(grid([["", "/ √d_k: key 1", "key 2", "/ √n: key 1", "key 2"], *rows], "    "))


# 5: who sees whom.


def visible() -> str:
    """Of a padded row: every query sees the sentence, or, if causal, what is not later."""
    tokens, segments = ["De", "nada", "</s>", "pad"], jnp.array([1, 1, 1, 0])
    both = {causal: visible_keys(segments, segments, causal=causal) for causal in (False, True)}
    parts = [marks(f"causal={causal}", both[causal], tokens, tokens) for causal in (False, True)]
    return fenced(f"segments  {' '.join(map(str, segments))}", beside(*parts))


def finite_mask() -> str:
    """Weights of three keys, the third masked by a finite number before or after scaling, or by being invisible."""
    rows = [["third key masked by", "before scaling", "after scaling"]]
    for name, mask in (("adding -10", -10.0), ("adding -100", -100.0), ("adding -1e9", -1e9)):
        third = jnp.array([[0, 0, mask]])
        before = (dot_product(WIDE_QUERY, WIDE_KEY) + third) / math.sqrt(64)
        after = scaled_dot_product(WIDE_QUERY, WIDE_KEY) + third
        rows.append([name, *(weights_in_words(softmax_over_keys(s, all_visible(1, 3))) for s in (before, after))])
    hidden = weigh_head(WIDE_QUERY, WIDE_KEY, jnp.array([[True, True, False]]))
    rows.append(["being invisible", *[weights_in_words(hidden)] * 2])
    return fenced(grid(rows, "     "))


def weights_in_words(weights: Float[Array, "1 S"]) -> str:
    return numbers(weights[0])


def sees_nothing() -> str:
    """A query whose keys are all masked: by a large number, by minus infinity, and by the repository."""
    scores, nothing = scaled_dot_product(WIDE_QUERY, WIDE_KEY), jnp.zeros((1, 3), bool)
    value = jnp.array([[1.0], [2.0], [3.0]])
    weights = {
        "adding -1e9": jax.nn.softmax(scores - 1e9),
        "adding -∞": jax.nn.softmax(scores - jnp.inf),
        "being invisible": weigh_head(WIDE_QUERY, WIDE_KEY, nothing),
    }
    gradient = jax.grad(lambda query: attend_head(query, WIDE_KEY, value, nothing).sum())(WIDE_QUERY)
    rows = [[name, numbers(row[0]), number((row @ value)[0, 0])] for name, row in weights.items()]
    table = grid([["every key masked by", "weights", "output"], *rows], "     ")
    return fenced(table, f"largest gradient of the last output by the query  {number(jnp.abs(gradient).max())}")


# 6: several heads.


def words() -> str:
    """The two words' vectors and the four matrices; of three of them, four columns a head."""
    components = [f"x{index}" for index in range(4)]
    parts = [
        beside(*(matrix(f"{name}, head {head + 1}", table[:, own_columns(head)], components, (), 0) for head in (0, 1)))
        for name, table in (("W^Q", TO_QUERY), ("W^K", TO_KEY), ("W^V", TO_VALUE))
    ]
    rows = [f"head {1 + index // 4}" if index % 4 == 0 else "" for index in range(8)]
    return fenced(matrix("x", WORD_VECTORS, WORDS, components, 0), *parts, matrix("W^O", TO_OUTPUT, rows, (), 0))


def own_columns(head: int) -> slice:
    return slice(4 * head, 4 * head + 4)


def one_head(x: Float[Array, "T D"], head: int) -> tuple[Float[Array, "T H"], Float[Array, "T H"], Float[Array, "T U"]]:
    """Query, key and value of a head: the whole of each word's vector through the head's own columns."""
    columns = own_columns(head)
    return x @ TO_QUERY[:, columns], x @ TO_KEY[:, columns], x @ TO_VALUE[:, columns]


def heads_apart(x: Float[Array, "T D"]) -> list[Float[Array, "T U"]]:
    """Each head by itself, out of its own matrices."""
    return [attend_head(*one_head(x, head), all_visible(2, 2)) for head in range(2)]


def heads_that_split(x: Float[Array, "T D"]) -> list[Float[Array, "T U"]]:
    """What some tutorials do instead: a head gets only its part of each word's vector. Here two components each."""
    heads = []
    for part, rows, columns in ((x[:, :2], slice(0, 2), slice(0, 2)), (x[:, 2:], slice(2, 4), slice(4, 6))):
        query, key, value = (part @ table[rows, columns] for table in (TO_QUERY, TO_KEY, TO_VALUE))
        heads.append(attend_head(query, key, value, all_visible(2, 2)))
    return heads


def head_by_head() -> str:
    """Every step of both heads, each with its own 4 × 4 columns of the matrices."""
    return fenced(*(steps_of_head(head) for head in range(2)))


def steps_of_head(head: int) -> str:
    query, key, value = one_head(WORD_VECTORS, head)
    visible = all_visible(2, 2)
    projected = [matrix(name, rows, WORDS, (), 0) for name, rows in zip("qkv", (query, key, value), strict=True)]
    scores, weights = scaled_dot_product(query, key), weigh_head(query, key, visible)
    output = attend_head(query, key, value, visible)
    found = [
        matrix("scores", scores, WORDS, WORDS, 2),
        matrix("weights", weights, WORDS, WORDS),
        matrix("output", output, WORDS),
    ]
    return f"head {head + 1}\n\n{beside(*projected)}\n\n{beside(*found)}"


def heads_together() -> str:
    """Concatenated and projected back; the same in the fused form; and the largest difference between the two."""
    concatenated = jnp.concatenate(heads_apart(WORD_VECTORS), axis=1)
    apart = concatenated @ TO_OUTPUT
    steps = sublayer(WORD_VECTORS[None], WORD_VECTORS[None], Projections(TO_QUERY, TO_KEY, TO_VALUE, TO_OUTPUT))
    difference = jnp.abs(apart - steps[-1].array[0]).max()
    return fenced(
        matrix("concat(head 1, head 2)", concatenated, WORDS),
        matrix("concat(head 1, head 2) W^O", apart, WORDS),
        f"fused\n\n{table_of_steps(steps)}",
        f"largest difference between the two outputs  {number(difference, 5)}",
    )


def dimensions() -> str:
    """How much each head's output changes (its largest change) when one component of the first word grows by 1."""
    head = ["component changed", *(f"{kind}, head {n}" for kind in ("whole vector", "its part") for n in (1, 2))]
    rows = []
    for component in range(4):
        changed = WORD_VECTORS.at[0, component].add(1.0)
        changes = [change(heads, changed) for heads in (heads_apart, heads_that_split)]
        rows.append([f"x{component}", *(number(one) for both in changes for one in both)])
    return markdown(head, rows)


def change(heads: Callable[[Array], list[Array]], changed: Float[Array, "T D"]) -> list[Array]:
    return [jnp.abs(new - old).max() for new, old in zip(heads(changed), heads(WORD_VECTORS), strict=True)]


# 7: the three uses in an encoder-decoder.


class Projections(NamedTuple):
    """The four matrices of multi-head attention; N heads of width H stand side by side in the columns of three."""

    query: Float[Array, "D NH"]
    key: Float[Array, "D NH"]
    value: Float[Array, "D NU"]
    output: Float[Array, "NU D"]


class Step(NamedTuple):
    name: str
    axes: str
    array: Array


class Use(NamedTuple):
    """One of the three uses: who asks whom, and what was computed."""

    title: str
    queries: list[str]
    keys: list[str]
    causal: bool
    steps: list[Step]

    @property
    def weights(self) -> Float[Array, "N T S"]:
        return next(step.array[0] for step in self.steps if step.name.startswith("weights"))


def sublayer(
    x: Float[Array, "B T D"], context: Float[Array, "B S D"], matrices: Projections, *, causal: bool = False
) -> list[Step]:
    """Multi-head attention as ``model/layers.py`` has it, without biases, and with what it computes on the way."""
    query, key, value = (
        split_heads(vectors @ table) for vectors, table in zip((x, context, context), matrices, strict=False)
    )
    sees: dict[str, Any] = {"query_segments": ones(x), "key_segments": ones(context), "causal": causal}
    weights, heads = weigh(query, key, **sees), attend(query, key, value, **sees)
    concatenated = heads.swapaxes(1, 2).reshape(*x.shape[:2], -1)
    return [
        Step("x, who asks", "B T D", x),
        Step("context, who is asked", "B S D", context),
        Step("query = x W^Q, by head", "B N T H", query),
        Step("key = context W^K, by head", "B N S H", key),
        Step("value = context W^V, by head", "B N S U", value),
        Step("weights = softmax(query keyᵀ / √H)", "B N T S", weights),
        Step("heads = weights value", "B N T U", heads),
        Step("heads side by side", "B T NU", concatenated),
        Step("output = heads side by side W^O", "B T D", concatenated @ matrices.output),
    ]


def split_heads(projected: Float[Array, "B T NH"]) -> Float[Array, "B N T H"]:
    """Columns 0 to H - 1 are the first head's, and so on."""
    batch, length, width = projected.shape
    return projected.reshape(batch, length, HEADS, width // HEADS).swapaxes(1, 2)


def ones(vectors: Float[Array, "B T D"]) -> Int[Array, "B T"]:
    """The segments of rows that hold one sentence each and no padding."""
    return jnp.ones(vectors.shape[:2], int)


def table_of_steps(steps: list[Step]) -> str:
    """Names, axes and shapes in three columns."""
    rows = [(step.name, step.axes, shape(step.array)) for step in steps]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name.ljust(first)}   {axes.ljust(second)}   {sizes}" for name, axes, sizes in rows)


def drawn(name: int, *sizes: int, deviation: float = 1.0) -> Array:
    """Normally distributed numbers of a seed, rounded to tenths so that they are the same everywhere."""
    seed = jax.random.fold_in(jax.random.key(SEED), name)
    return jnp.round(deviation * jax.random.normal(seed, sizes), 1)


def projections(first: int) -> Projections:
    """Four matrices, so drawn that projecting keeps a vector's length about as it is."""
    return Projections(*(drawn(first + index, WIDTH, WIDTH, deviation=WIDTH**-0.5) for index in range(4)))


@cache
def uses() -> dict[str, Use]:
    """The sublayers of one encoder block and one decoder block that attend, each added to what it reads.

    Norms, feed-forward networks and dropout are left out: ``model/transformer.py`` has them.
    """
    source, target = drawn(0, 1, len(SOURCE), WIDTH), drawn(1, 1, len(TARGET), WIDTH)
    encoder = sublayer(source, source, projections(10))
    memory = source + encoder[-1].array
    decoder = sublayer(target, target, projections(20), causal=True)
    state = target + decoder[-1].array
    encoder_decoder = sublayer(state, memory, projections(30))
    return {
        "encoder": Use("encoder self-attention", SOURCE, SOURCE, False, encoder),
        "decoder": Use("masked decoder self-attention", TARGET, TARGET, True, decoder),
        "encoder-decoder": Use("encoder-decoder attention", TARGET, SOURCE, False, encoder_decoder),
    }


def shapes_of_uses() -> str:
    """The shapes of every step of the three uses."""
    rows = [["", "axes", *uses()]]
    for steps in zip(*(use.steps for use in uses().values()), strict=True):
        rows.append([steps[0].name, steps[0].axes, *(shape(step.array) for step in steps)])
    return fenced(grid(rows, "   "))


def weights_of(name: str) -> str:
    """Both heads' weights in one of the three uses."""
    use = uses()[name]
    tables = [
        matrix(f"head {head}", weights, use.queries, use.keys) for head, weights in enumerate(use.weights, start=1)
    ]
    return fenced(beside(*tables))


# 8 and 9: other scores, what they cost, and other means to the same numbers.


def scores_compared() -> str:
    """The first query under four scores."""
    swap = jnp.eye(4)[jnp.array([1, 0, 2, 3])]
    named = {
        "dot            q·k": Score(dot_product),
        "scaled dot     q·k / √d_k": SCALED_DOT_PRODUCT,
        "general        qᵀ W k": Score(general, swap),
        "additive       v·tanh(q + k)": Score(additive, jnp.ones(4)),
    }
    rows = [["", "score: key 1", "key 2", "weight: key 1", "key 2"]]
    for name, score in named.items():
        weights = weigh_head(QUERY[:1], KEY, all_visible(1, 2), score=score)
        rows.append([name, *map(number, [*score(QUERY[:1], KEY)[0], *weights[0]])])
    return fenced(grid(rows, "    "))


class Cost(NamedTuple):
    milliseconds: float
    mebibytes: float


def cost() -> str:
    """Time and memory of additive against scaled dot-product attention on this machine."""
    batch, heads, width = MEASURED_SHAPE
    measured = {length: costs_at(length) for length in LENGTHS}
    setting = f"B = {batch}, N = {heads}, H = U = {width}, T = S as below, float32, on {this_machine()}."
    return "\n\n".join(
        [
            f"{setting} Medians of {TURNS} turns, in each of which every function runs once. Milliseconds:",
            cost_table(measured, lambda cost: cost.milliseconds),
            "MiB that the compiled function needs beside its arguments and results (XLA's `temp_size_in_bytes`):",
            cost_table(measured, lambda cost: cost.mebibytes),
        ]
    )


def this_machine() -> str:
    facts = environment()
    packages = ", ".join(f"{name} {facts['packages'][name]}" for name in ("jax", "jaxlib"))
    changes = " with uncommitted changes" if facts["uncommitted_changes"] else ""
    device = f"{facts['processors']} cores of {processor()}, JAX on {jax.default_backend()}"
    return f"{device}, Python {facts['python']}, {packages}, commit {facts['commit'][:7]}{changes}"


def cost_table(measured: dict[int, dict[tuple[str, str], Cost]], of: Callable[[Cost], float]) -> str:
    """A row for each length: both scores and their ratio, for the forward pass and for both passes."""
    head = ["T = S", "forward: dot", "additive", "ratio", "forward + backward: dot", "additive", "ratio"]
    rows = []
    for length, costs in measured.items():
        pairs = [(of(costs[way, "dot"]), of(costs[way, "additive"])) for way in ("forward", "both")]
        cells = [[number(dot, 2), number(add, 2), number(add / dot, 1)] for dot, add in pairs]
        rows.append([str(length), *cells[0], *cells[1]])
    return markdown(head, rows)


def costs_at(length: int) -> dict[tuple[str, str], Cost]:
    """Cost by pass and score. They take turns, so that what disturbs the machine disturbs all of them."""
    runs = compiled_at(length)
    times: dict[tuple[str, str], list[float]] = {name: [] for name in runs}
    for _ in range(TURNS):
        for name, (function, arguments) in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            times[name].append(1000 * (time.perf_counter() - start))
    return {
        name: Cost(statistics.median(times[name]), function.memory_analysis().temp_size_in_bytes / 2**20)
        for name, (function, _) in runs.items()
    }


def compiled_at(length: int) -> dict[tuple[str, str], tuple[Any, tuple[Any, ...]]]:
    """Functions with their arguments, compiled and run once. Gradients are those of all arrays, the score's too."""
    batch, heads, width = MEASURED_SHAPE
    query, key, value = (drawn(40 + index, batch, heads, length, width) for index in range(3))
    segments = jnp.ones((batch, length), int)

    def forward(query: Array, key: Array, value: Array, score: Score) -> Array:
        return attend(
            query, key, value, query_segments=segments, key_segments=segments, causal=False, score=score
        ).sum()

    runs = {}
    vectors = Score(additive, drawn(43, heads, width))
    for what, score in (("dot", SCALED_DOT_PRODUCT), ("additive", vectors)):
        for way, function in (("forward", forward), ("both", jax.grad(forward, argnums=(0, 1, 2, 3)))):
            arguments = query, key, value, score
            compiled = jax.jit(function).lower(*arguments).compile()
            jax.block_until_ready(compiled(*arguments))
            runs[way, what] = compiled, arguments
    return runs


def kernels() -> str:
    """How far the kernels that run anywhere are from the definition, on the three uses of section 7."""
    rows = [["", *uses()]]
    for kernel in ("xla", "chunked"):
        rows.append([kernel, *(number(distance(use, kernel), 5) for use in uses().values())])
    return fenced(grid(rows, "    "))


def distance(use: Use, kernel: str) -> Array:
    """The largest difference between a kernel's heads and the definition's."""
    x, context, query, key, value, _, heads, *_ = (step.array for step in use.steps)
    sees: dict[str, Any] = {"query_segments": ones(x), "key_segments": ones(context), "causal": use.causal}
    return jnp.abs(attend(query, key, value, **sees, kernel=kernel) - heads).max()


# The pictures.


def png(figure: Figure) -> bytes:
    """The figure as a PNG file, without the date or the program's version: the same figure is the same file."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=130, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def draw_scale() -> Figure:
    """Variance, largest weight and gradient of the softmax against d_k."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for score, colour, name in ((dot_product, ORANGE, "$q·k$"), (scaled_dot_product, BLUE, r"$q·k\;/\sqrt{d_k}$")):
        found = [study(width, score) for width in WIDTHS]
        style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 5}
        left.plot(WIDTHS, [one.variance for one in found], label=name, **style)
        middle.plot(WIDTHS, [one.largest_weight for one in found], **style)
        right.plot(WIDTHS, [one.score_gradient.mean() for one in found], **style)
        right.plot(WIDTHS, [np.median(one.score_gradient) for one in found], linestyle="--", **style)
    for line, name in (("-", "mean of the queries"), ("--", "median")):
        right.plot([], [], color="0.3", linestyle=line, label=name)
    over_widths(left, "Variance of a score", (1, 4, 16, 64, 256))
    over_widths(middle, f"Largest of {DRAWN_KEYS} weights, mean", ())
    over_widths(right, "Norm of the softmax's Jacobian", (0.01, 0.03, 0.1, 0.3))
    middle.set_ylim(0, 1)
    left.legend(frameon=False, fontsize=11)
    right.legend(frameon=False, loc="lower left")
    return figure


def over_widths(axes: Axes, title: str, ticks: tuple[float, ...]) -> None:
    """A panel over d_k; with ticks, its other axis is logarithmic as well."""
    axes.set_title(title, fontsize=11)
    axes.set_xscale("log", base=2)
    axes.set_xticks(WIDTHS, map(str, WIDTHS))
    axes.set_xlim(3.2, 320)
    axes.set_xlabel("$d_k$, the width of a key")
    if ticks:
        axes.set_yscale("log")
        axes.set_yticks(ticks, map(str, ticks))
        axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_visible() -> Figure:
    """Who sees whom in a row with two sentence pairs, for the three uses."""
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    source, target = (PACKED_SOURCE, SOURCE_SEGMENTS), (PACKED_TARGET, TARGET_SEGMENTS)
    kinds = [
        ("encoder self-attention", source, source, False),
        ("masked decoder self-attention", target, target, True),
        ("encoder-decoder attention", target, source, False),
    ]
    panels = figure.subplots(1, 3, width_ratios=[8, 6, 8])
    for axes, (title, (queries, rows), (keys, columns), causal) in zip(panels, kinds, strict=True):
        visible = visible_keys(rows, columns, causal=causal)
        axes.imshow(jnp.where(visible, rows[:, None], 0), cmap=SEGMENT_COLOURS, vmin=0, vmax=2)
        label(axes, title, queries, keys)
        axes.set(xlabel="key", ylabel="query", anchor="N")
        axes.set_xticks(np.arange(len(keys) - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(len(queries) - 1) + 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
    return figure


def label(axes: Axes, title: str, queries: list[str], keys: list[str]) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xticks(range(len(keys)), keys, rotation=90)
    axes.set_yticks(range(len(queries)), queries)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)


def draw_welcome() -> Figure:
    """Heat maps of both heads in the three uses; grey where a query cannot see a key."""
    figure = Figure(figsize=(10, 6), layout="constrained")
    panels = figure.subplots(HEADS, 3, width_ratios=[4, 3, 4])
    for column, use in enumerate(uses().values()):
        for head, axes in enumerate(panels[:, column]):
            draw_weights(axes, use, head)
        panels[0, column].set_title(f"{use.title}\nhead 1", fontsize=11)
        panels[-1, column].set_xlabel("key")
    return figure


def draw_weights(axes: Axes, use: Use, head: int) -> None:
    weights = np.array(use.weights[head])
    seen = np.tri(*weights.shape, dtype=np.bool_) if use.causal else np.ones(weights.shape, np.bool_)
    axes.imshow(np.where(seen, weights, np.nan), cmap=COLOURS, vmin=0, vmax=1)
    label(axes, f"head {head + 1}", use.queries, use.keys)
    axes.set(ylabel="query", anchor="N")
    for (row, column), weight in np.ndenumerate(weights):
        if seen[row, column]:
            colour = "white" if weight > 0.4 else "black"
            axes.text(column, row, number(weight, 2), ha="center", va="center", color=colour)


BLOCKS: dict[str, Callable[[], str]] = {
    "one-query": one_query,
    "several-queries": several_queries,
    "wrong-axis": wrong_axis,
    "shapes": shapes,
    "scale": scale,
    "number-of-keys": number_of_keys,
    "padded-row": padded_row,
    "visible": visible,
    "finite-mask": finite_mask,
    "sees-nothing": sees_nothing,
    "words": words,
    "head-by-head": head_by_head,
    "heads-together": heads_together,
    "dimensions": dimensions,
    "shapes-of-uses": shapes_of_uses,
    "encoder": partial(weights_of, "encoder"),
    "decoder": partial(weights_of, "decoder"),
    "encoder-decoder": partial(weights_of, "encoder-decoder"),
    "scores": scores_compared,
    "kernels": kernels,
}
MEASURED: dict[str, Callable[[], str]] = {"cost": cost}
PICTURES: dict[str, Callable[[], Figure]] = {
    "attention-scale.png": draw_scale,
    "attention-visible.png": draw_visible,
    "attention-welcome.png": draw_welcome,
}


if __name__ == "__main__":
    main()
