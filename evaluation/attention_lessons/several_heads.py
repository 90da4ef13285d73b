"""Section 6: several heads, one by one and fused.

B batch row · T query position · S key position · N query head · H width of a query/key head · U width of a value head
D model width
"""

from collections import namedtuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from attention import Mask, attend, attention_weights, scaled_dot_product
from evaluation.attention_lessons.one_head import attend_to_all
from evaluation.attention_lessons.text import aligned, code_block, markdown_table, matrix, number, side_by_side, sizes

HEADS = 2


# Matrices of "D NH", "D NH", "D NU" and "NU D"; in the first three, the columns of N heads stand side by side.
Projections = namedtuple("Projections", "query key value output")

# Two words of width D = 4 through N = 2 heads of width H = 4. Columns 0 to 3 of a matrix are head 1's.
WORDS, COMPONENTS = ["De", "nada"], ["x0", "x1", "x2", "x3"]
WORD_VECTORS = jnp.array([[2.0, 0, 1, 1], [0, 2, -1, 2]])
MATRICES = (
    [[1.0, 0, 0, 1, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0, 0, -1], [0, 0, 1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1, 0, 1]],
    [[0.0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0, 0], [0, 1, 0, -1, 0, 0, -1, 0]],
    [[1.0, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0]],
    [
        [1.0, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 0, 0, -1],
        [0, 1, 0, 0],
        [0, 0, -1, 0],
        [1, 0, 0, 0],
    ],
)
PROJECTIONS = Projections(*map(jnp.array, MATRICES))

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


def apply_sublayer(
    x: Float[Array, "B T D"], context: Float[Array, "B S D"], matrices: Projections, *, causal: bool = False
) -> Sublayer:
    """Multi-head attention as ``model/layers.py`` has it, without biases."""
    query, key, value = (
        split_heads(vectors @ table) for vectors, table in zip((x, context, context), matrices, strict=False)
    )
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
        parts.append(side_by_side(*(matrix(f"{name}, head {head}", half, COMPONENTS, (), 0) for head, half in halves)))
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
    outputs = []
    for rows, columns in ((slice(0, 2), slice(0, 2)), (slice(2, 4), slice(4, 6))):
        outputs.append(attend_to_all(*(x[:, rows] @ table[rows, columns] for table in PROJECTIONS[:3]))[1])
    return outputs


def head_by_head() -> str:
    """Every step of both heads, each with its own 4 × 4 columns of the matrices."""
    parts = []
    for head in range(HEADS):
        query, key, value = project(WORD_VECTORS, head)
        weights, output = attend_to_all(query, key, value)
        projected = zip("qkv", (query, key, value), strict=True)
        scores = matrix("scores", scaled_dot_product(query, key), WORDS, WORDS, 2)
        parts += [
            f"head {head + 1}",
            side_by_side(*(matrix(name, vectors, WORDS, (), 0) for name, vectors in projected)),
            side_by_side(scores, matrix("weights", weights, WORDS, WORDS), matrix("output", output, WORDS)),
        ]
    return code_block(*parts)


def heads_together() -> str:
    """Concatenated and projected back; the same in fused form; and the largest difference between the two."""
    concatenated = jnp.concatenate(attend_by_head(WORD_VECTORS), axis=1)
    output = concatenated @ PROJECTIONS.output
    fused = apply_sublayer(WORD_VECTORS[None], WORD_VECTORS[None], PROJECTIONS)
    steps = [(*step, sizes(array)) for step, array in zip(STEPS, fused, strict=True)]
    return code_block(
        matrix("concat(head 1, head 2)", concatenated, WORDS),
        matrix("concat(head 1, head 2) W^O", output, WORDS),
        f"fused\n\n{aligned(steps, '   ', left=3)}",
        f"largest difference between the two outputs  {number(jnp.abs(output - fused.output[0]).max(), 5)}",
    )


def dimensions() -> str:
    """The largest change of each head's output when one component of the first word grows by 1."""
    head = ["component changed", *(f"{kind}, head {n}" for kind in ("whole vector", "its part") for n in (1, 2))]
    rows = []
    for index, component in enumerate(COMPONENTS):
        changed, row = WORD_VECTORS.at[0, index].add(1.0), [component]
        for attend_heads in (attend_by_head, attend_by_part):
            pairs = zip(attend_heads(changed), attend_heads(WORD_VECTORS), strict=True)
            row += [number(jnp.abs(new - old).max()) for new, old in pairs]
        rows.append(row)
    return markdown_table(head, rows)


BLOCKS = {
    "words": words,
    "head-by-head": head_by_head,
    "heads-together": heads_together,
    "dimensions": dimensions,
}
