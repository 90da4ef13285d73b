"""Tables of text: rendered for a terminal or as Markdown."""

import math
import re
from dataclasses import dataclass

from common.text import visible

NUMBER = re.compile(r"[\d.,]+%?|–|")
MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&$])")


@dataclass(frozen=True)
class Table:
    """Rows of cells with a title, a note on how to read them, and a header as long as every row."""

    title: str
    note: str
    header: list[str]
    rows: list[list[str]]


def as_text(table: Table) -> str:
    """Render for a terminal, with aligned columns and right-aligned numbers."""
    columns = [_align(list(map(visible, column))) for column in zip(table.header, *table.rows, strict=True)]
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "\n".join(line for line in [table.title.upper(), visible(table.note), *lines] if line)


def as_markdown(table: Table) -> str:
    """Render as Markdown: a heading, the note and a table."""
    header, *rows = (f"| {' | '.join(map(escape_markdown, cells))} |" for cells in (table.header, *table.rows))
    body = "\n".join([header, "|" + " --- |" * len(table.header), *rows])
    return "\n\n".join(part for part in (f"## {table.title}", escape_markdown(table.note), body) if part)


def three_digits(number: float) -> str:
    """Format a number that is not negative with at least three significant digits, or 0."""
    return f"{number:,.{max(0, 2 - math.floor(math.log10(number)))}f}" if number else "0"


def _align(column: list[str]) -> list[str]:
    width = max(map(len, column))
    is_numeric = any(column[1:]) and all(NUMBER.fullmatch(cell) for cell in column[1:])
    return [cell.rjust(width) if is_numeric else cell.ljust(width) for cell in column]


def escape_markdown(text: str) -> str:
    """Escape text to appear literally in a line of Markdown; spells out unprintable characters, such as line breaks."""
    return MARKDOWN.sub(r"\\\1", visible(text))
