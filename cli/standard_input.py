"""Lines of standard input, in blocks that bound the memory; a line that is not UTF-8 does not end them."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

LINES, CHARACTERS = 512, 100_000  # of a block at most, except that a single line may be longer


class Line(NamedTuple):
    """A line, its number from 1, and why it cannot be used, if so."""

    number: int
    text: str
    problem: str = ""


def read_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """Decode lines that end at line feeds only."""
    for number, line in enumerate(lines, start=1):
        try:
            yield Line(number, line.decode())
        except UnicodeDecodeError as error:
            yield Line(number, "", f"invalid UTF-8 at byte {error.start + 1} of the line")


def blocks(lines: Iterable[Line], longest: int = LINES) -> Iterator[list[Line]]:
    """Blocks of ``longest`` lines, fewer if they are long."""
    block: list[Line] = []
    for line in lines:
        block.append(line)
        if len(block) == longest or sum(len(each.text) for each in block) >= CHARACTERS:
            yield block
            block = []
    if block:
        yield block
