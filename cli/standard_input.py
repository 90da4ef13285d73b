"""Read lines of standard input in blocks, to bound the memory; reading continues after a line that is not UTF-8."""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from common.errors import write_note
from common.files import LONGEST_LINE, TOO_LONG, bounded_lines

LINES, CHARACTERS = 2048, 100_000  # limits of a block, except that a single line may be longer


class InputLine(NamedTuple):
    """A line, its number, counted from 1, and what is wrong with it if it cannot be used."""

    number: int
    text: str
    problem: str = ""


def input_lines() -> Iterator[InputLine]:
    """The lines of standard input."""
    return read_lines(bounded_lines(sys.stdin.buffer.readline, b"\n"))


def read_lines(lines: Iterable[bytes]) -> Iterator[InputLine]:
    """Decode lines, which end only at line feeds."""
    for number, line in enumerate(lines, start=1):
        if len(line) - line.endswith(b"\n") > LONGEST_LINE:
            yield InputLine(number, "", TOO_LONG)
            continue
        try:
            yield InputLine(number, line.decode())
        except UnicodeDecodeError as error:
            yield InputLine(number, "", f"invalid UTF-8 at byte {error.start + 1} of the line")


def read_terminal(help: str) -> Iterator[bytes]:
    """Lines from a terminal until Ctrl-D or :quit, with a prompt unless output goes to a file; :help shows ``help``."""
    import readline  # noqa: F401  (gives input() the arrow keys and a history)

    while True:
        try:
            line = input("> " if sys.stdout.isatty() else "")
        except EOFError:
            return
        if line.strip() == ":quit":
            return
        if line.strip() == ":help":
            write_note(help)
        else:
            yield line.encode(errors="surrogateescape")


def blocks(lines: Iterable[InputLine], longest: int = LINES) -> Iterator[list[InputLine]]:
    """Blocks of ``longest`` lines, or fewer if they are long."""
    block, characters = list[InputLine](), 0
    for line in lines:
        block.append(line)
        characters += len(line.text)
        if len(block) == longest or characters >= CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block
