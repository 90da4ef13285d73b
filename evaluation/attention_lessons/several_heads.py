"""Sections 6 to 9: several heads, one by one and fused; the three uses; other scores and their cost; other kernels.

B batch row · T query position · S key position · N query head · H width of a query/key head · U width of a value head
D model width
"""

from collections import namedtuple
from functools import cache

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attention.masks import Mask
from attention.multihead import attend, attention_weights
from attention.scores import Score, additive, dot_product, general, scaled_dot_product
from evaluation.attention_lessons.one_head import KEY, QUERY, attend_to_all, softmax
from evaluation.attention_lessons.text import aligned, beside, code_block, markdown_table, matrix, number, sizes

HEADS = 2
SOURCE, TARGET = ["You", "are", "welcome", "</s>"], ["<s>", "De", "nada"]
WIDTH, SEED = 6, 8

# Matrices of "D NH", "D NH", "D NU" and "NU D"; in the first three, the columns of N heads stand side by side.
Projections = namedtuple("Projections", "query key value output")

# Two words of width D = 4 through N = 2 heads of width H = 4. Columns 0 to 3 of a matrix are head 1's.
WORDS, COMPONENTS = ["De", "nada"], ["x0", "x1", "x2", "x3"]
WORD_VECTORS = jnp.array([[2.0, 0, 1, 1], [0, 2, -1, 2]])
MATRICES = (  # the last one transposed
    [[1.0, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 0, -1], [0, 0, 1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1, 0, 1]],
    [[0.0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0, 0], [0, 1, 0, -1, 0, 0, -1, 0]],
    [[1.0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0]],
    [[1.0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0, -1, 0], [0, 0, 0, 1, -1, 0, 0, 0]],
)
PROJECTIONS = Projections._make([*map(jnp.array, MATRICES[:3]), jnp.array(MATRICES[3]).T])

STEPS = (  # of a sublayer, as the page names them and their axes
    ("x, who asks", "B T D"),
    ("context, who is asked", "B S D"),
    ("query = x W^Q, by head", "B N T H"),
    ("key = context W^K, by head", "B N S H"),
    ("value = context W^V, by head", "B N S U"),
    ("weights = softmax(query keyᵀ / √H)", "B N T S"),
    ("heads = weights value", "B N T U"),
    ("heads side by side", "B T NU"),
    ("output = heads side by side W^O", "B T D"),
)
Sublayer = namedtuple("Sublayer", "x context query key value weights heads concatenated output")  # arrays of STEPS
Use = namedtuple("Use", "title queries keys causal steps")  # one use of attention: its tokens, and a Sublayer


def apply_sublayer(
    x: Float[Array, "B T D"], context: Float[Array, "B S D"], matrices: Projections, *, causal: bool = False
) -> Sublayer:
    """Multi-head attention as ``model/layers.py`` has it, without biases."""
    projected = zip((x, context, context), matrices, strict=False)
    query, key, value = (split_heads(vectors @ table) for vectors, table in projected)
    mask = unpadded(query, key, causal)
    weights, heads = attention_weights(query, key, mask), attend(query, key, value, mask=mask)
    concatenated = heads.swapaxes(1, 2).reshape(*x.shape[:2], -1)
    return Sublayer(x, context, query, key, value, weights, heads, concatenated, concatenated @ matrices.output)


def split_heads(projected: Float[Array, "B T NH"]) -> Float[Array, "B N T H"]:
    """Columns 0 to H - 1 are the first head's, and so on."""
    return projected.reshape(*projected.shape[:2], HEADS, -1).swapaxes(1, 2)


def unpadded(query: Float[Array, "B N T H"], key: Float[Array, "B N S H"], causal: bool) -> Mask:
    """The mask of rows that hold one sentence each and no padding."""
    query_segments, key_segments = (jnp.ones_like(vectors[:, 0, :, 0], int) for vectors in (query, key))
    return Mask(query_segments, key_segments, causal)


def words() -> str:
    """The two words' vectors and the four matrices, the first three with four columns for each head."""
    parts = [matrix("x", WORD_VECTORS, WORDS, COMPONENTS, 0)]
    for name, table in zip(("W^Q", "W^K", "W^V"), PROJECTIONS, strict=False):
        halves = enumerate(jnp.split(table, HEADS, axis=1), start=1)
        parts.append(beside(*(matrix(f"{name}, head {head}", half, COMPONENTS, (), 0) for head, half in halves)))
    rows = ["head 1", "", "", "", "head 2", "", "", ""]
    return code_block(*parts, matrix("W^O", PROJECTIONS.output, rows, (), 0))


def project(x: Float[Array, "T D"], head: int) -> list[Float[Array, "T _"]]:
    """Query, key and value of a head: the whole of each word's vector through the head's own columns."""
    return [x @ table[:, 4 * head : 4 * head + 4] for table in PROJECTIONS[:3]]


def attend_by_head(x: Float[Array, "T D"]) -> list[Float[Array, "T U"]]:
    """The output of each head, computed from its own columns."""
    return [attend_to_all(*project(x, head))[1] for head in range(HEADS)]


def attend_by_part(x: Float[Array, "T D"]) -> list[Float[Array, "T U"]]:
    """What some tutorials do instead: a head gets only its part of each word's vector, here two components."""
    parts = (slice(0, 2), slice(0, 2)), (slice(2, 4), slice(4, 6))  # rows and columns of the matrices
    projected = ([x[:, rows] @ table[rows, columns] for table in PROJECTIONS[:3]] for rows, columns in parts)
    return [attend_to_all(*vectors)[1] for vectors in projected]


def head_by_head() -> str:
    """Every step of both heads, each with its own 4 × 4 columns of the matrices."""
    parts = []
    for head in range(HEADS):
        projected = project(WORD_VECTORS, head)
        weights, output = attend_to_all(*projected)
        scores = matrix("scores", scaled_dot_product(*projected[:2]), WORDS, WORDS, 2)
        inputs = (matrix(name, vectors, WORDS, (), 0) for name, vectors in zip("qkv", projected, strict=True))
        results = scores, matrix("weights", weights, WORDS, WORDS), matrix("output", output, WORDS)
        parts += [f"head {head + 1}", beside(*inputs), beside(*results)]
    return code_block(*parts)


def heads_together() -> str:
    """Concatenated and projected back; the same in fused form; and the largest difference between the two."""
    concatenated = jnp.concatenate(attend_by_head(WORD_VECTORS), axis=1)
    output = concatenated @ PROJECTIONS.output
    fused = apply_sublayer(WORD_VECTORS[None], WORD_VECTORS[None], PROJECTIONS)
    steps = [(*step, sizes(array)) for step, array in zip(STEPS, fused, strict=True)]
    parts = matrix("concat(head 1, head 2)", concatenated, WORDS), matrix("concat(head 1, head 2) W^O", output, WORDS)
    difference = f"largest difference between the two outputs  {number(jnp.abs(output - fused.output[0]).max(), 5)}"
    return code_block(*parts, f"fused\n\n{aligned(steps, '   ', left=3)}", difference)


def dimensions() -> str:
    """The largest change of each head's output when one component of the first word grows by 1."""
    head = ["component changed", *(f"{kind}, head {n}" for kind in ("whole vector", "its part") for n in (1, 2))]
    rows = []
    for index, component in enumerate(COMPONENTS):
        rows.append([component])
        for attend_heads in (attend_by_head, attend_by_part):
            pairs = zip(attend_heads(WORD_VECTORS.at[0, index].add(1.0)), attend_heads(WORD_VECTORS), strict=True)
            rows[-1] += [number(jnp.abs(new - old).max()) for new, old in pairs]
    return markdown_table(head, rows)


# Section 7: the three uses in an encoder-decoder. Section 9: other kernels on the same arrays.


def draw_normal(name: int, *shape: int, deviation: float = 1.0) -> Array:
    """Random numbers, rounded to tenths so that they are the same everywhere."""
    return jnp.round(deviation * jax.random.normal(jax.random.fold_in(jax.random.key(SEED), name), shape), 1)


def draw_projections(first: int) -> Projections:
    """Four matrices whose deviation about preserves a vector's length."""
    return Projections(*(draw_normal(first + index, WIDTH, WIDTH, deviation=WIDTH**-0.5) for index in range(4)))


@cache
def uses() -> dict[str, Use]:
    """The attention sublayers of an encoder and a decoder block, added to their inputs, without norms or dropout."""
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
    rows = [["", "axes", *uses()]]
    for step, *arrays in zip(STEPS, *(use.steps for use in uses().values()), strict=True):
        rows.append([*step, *map(sizes, arrays)])
    return code_block(aligned(rows, "   "))


def weights_of_use(name: str) -> str:
    use = uses()[name]
    heads = enumerate(use.steps.weights[0], start=1)
    return code_block(beside(*(matrix(f"head {head}", table, use.queries, use.keys) for head, table in heads)))


def kernels() -> str:
    """The largest difference between the heads of the definition and those of each kernel that runs anywhere."""
    rows = [["", *uses()]]
    for kernel in ("xla", "chunked"):
        rows.append([kernel])
        for use in uses().values():
            _, _, query, key, value, *_ = use.steps
            heads = attend(query, key, value, mask=unpadded(query, key, use.causal), kernel=kernel)
            rows[-1].append(number(jnp.abs(heads - use.steps.heads).max(), 5))
    return code_block(aligned(rows, "    "))


# Section 8: other scores.


def scores() -> str:
    swap = jnp.eye(4)[jnp.array([1, 0, 2, 3])]
    rows = [["", "score: key 1", "key 2", "weight: key 1", "key 2"]]
    for name, score in (
        ("dot            q·k", Score(dot_product)),
        ("scaled dot     q·k / √d_k", Score(scaled_dot_product)),
        ("general        qᵀ W k", Score(general, swap)),
        ("additive       v·tanh(q + k)", Score(additive, jnp.ones(4))),
    ):
        found = score(QUERY[:1], KEY)
        rows.append([name, *map(number, [*found[0], *softmax(found)[0]])])
    return code_block(aligned(rows, "    "))


BLOCKS = [words, head_by_head, heads_together, dimensions, shapes_of_uses, kernels, scores]
