"""The parts of plain text: paragraphs and lines stay, and sentences continue across wrapped lines."""

import re
from collections.abc import Iterator
from itertools import pairwise

from evaluation.documents.parts import Part, text_parts

NARROW = 40  # characters; in narrower columns, every line is separate
PREFIX = re.compile(r"\s*(?:(?:[-*•–>+]|\d+[.)])\s+)*")


def plain_parts(text: str) -> Iterator[Part]:
    for paragraph in re.split(r"(\n(?:[^\S\n]*\n)+)", text):
        lines = paragraph.split("\n")
        width = max(map(len, lines))
        yield from _line(lines[0])
        for before, line in pairwise(lines):
            if is_wrapped(before, line, width):
                yield Part("text", "\n", "\n")
                yield from text_parts(line)
            else:
                yield Part("keep", "\n")
                yield from _line(line)


def _line(line: str) -> Iterator[Part]:
    """The parts of a line: its indentation and list marker are kept, the rest is text."""
    prefix = PREFIX.match(line)
    assert prefix  # it may be empty
    yield Part("keep", prefix[0])
    yield from text_parts(line[prefix.end() :])


def is_wrapped(before: str, line: str, width: int) -> bool:
    """Whether a line ended only because its next word did not fit into a paragraph of this width."""
    first = line.split(maxsplit=1)[:1]
    begins_anew = not first or PREFIX.match(line)[0] != ""  # type: ignore[index]
    return width >= NARROW and not begins_anew and len(before.rstrip()) + 1 + len(first[0]) > width
