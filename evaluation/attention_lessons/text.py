"""Numbers, matrices and tables as the lessons print them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float


def number(values: Any, digits: int = 3) -> str:
    """The value, or several, with ``digits`` decimals; a value that rounds to zero has no sign."""
    return "  ".join(f"{round(float(value), digits) + 0.0:.{digits}f}" for value in np.ravel(values))


def aligned(rows: Sequence[Sequence[str]], gap: str = "  ", left: int = 1) -> str:
    """Rows of cells in columns: the first ``left`` columns flush left, the others flush right."""
    columns = []
    for index, cells in enumerate(zip(*rows, strict=True)):
        width = max(map(len, cells))
        columns.append([cell.ljust(width) if index < left else cell.rjust(width) for cell in cells])
    return "\n".join(gap.join(row).rstrip() for row in zip(*columns, strict=True))


def matrix(
    title: str, values: Float[Array, "rows columns"], rows: Sequence[str], columns: Sequence[str] = (), digits: int = 3
) -> str:
    """Values next to the names of their rows and, if there are any, under the names of their columns."""
    named = zip(rows, np.asarray(values), strict=True)
    body = [[name, *(number(value, digits) for value in row)] for name, row in named]
    return aligned([[title, *columns], *body]) if columns else f"{title}\n{aligned(body)}"


def beside(*blocks: str) -> str:
    """Blocks of equally many lines, from left to right."""
    return aligned(list(zip(*(block.split("\n") for block in blocks), strict=True)), gap="     ", left=len(blocks))


def code_block(*parts: str) -> str:
    """A Markdown code block with an empty line between the parts."""
    return "\n".join(["```text", "\n\n".join(parts), "```"])


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---:"] * len(head), *rows])


def sizes(array: Array) -> str:
    """The array's shape, such as 3 × 4."""
    return " × ".join(map(str, array.shape))
