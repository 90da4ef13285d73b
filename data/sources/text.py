"""Text files of sentence pairs: two files of parallel lines, and code that tables and JSON lines share."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

from common.errors import UserError
from common.files import sha256, sha256_of_file
from data.config import DataConfig
from data.invisible import is_blank
from data.sources.lines import IsOpen, Malformed, decode_line, join_lines, read_byte_lines
from data.sources.report import SourceReport

Item = TypeVar("Item")
Row = tuple[str, str]
Parse = Callable[[Item, int], Row]  # an item and its number; raises Malformed
Rows = Generator[Row, None, SourceReport]  # yields both columns of each row, returns the report
OTHERS = 20  # rows to read to see whether only the first one is malformed


class RowReader:
    """Iterates over rows; ``report`` is set after the last one."""

    report: SourceReport

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        self.report = yield from self._rows


def read_parallel(config: DataConfig, first: Path, second: Path, name: str) -> Rows:
    """Read two files with the same number of lines, where line i of one translates line i of the other.

    They are reported as one file ``name`` in their folder; its SHA-256 is the SHA-256 of their two SHA-256s.
    """

    def parse(lines: tuple[bytes, bytes], number: int) -> Row:
        return decode_line(lines[0], first, number, encoding), decode_line(lines[1], second, number, encoding)

    def digest() -> str:
        return sha256(f"{sha256_of_file(first)} {sha256_of_file(second)}")

    encoding, together = config.encoding, str(first.with_name(name))
    lines = enumerate(pair_lines(encoding, first, second), 1)
    return parse_rows(config, together, lines, parse, digest)


def pair_lines(encoding: str, first: Path, second: Path) -> Iterator[tuple[bytes, bytes]]:
    """Line i of both files; UserError if one has more lines, unless the extra ones are blank."""
    lines = zip_longest(read_byte_lines(first, encoding), read_byte_lines(second, encoding))
    for number, (one, other) in enumerate(lines, 1):
        if one is None or other is None:
            if not is_blank((one or other or b"").decode(errors="replace")):
                short, long = (first, second) if one is None else (second, first)
                raise UserError(f"{short} has no line {number}, but {long} has one: they are not parallel")
            one, other = b"", b""
        yield one, other


def read_lines(
    config: DataConfig, path: Path, parse: Callable[[str], Row], first: int = 1, is_open: IsOpen | None = None
) -> Rows:
    """Read one pair per line from line ``first`` on; ``parse`` raises Malformed. A blank line is an empty pair.

    A pair continues on the next line while the text so far ``is_open``.
    """

    def parse_line(line: bytes, number: int) -> Row:
        text = decode_line(line, path, number, config.encoding)
        try:
            return parse(text)
        except Malformed as problem:
            if is_blank(text):
                return "", ""
            raise Malformed(f"{path}:{number}: {problem}", problem.advice(), problem.for_all) from None

    lines = islice(read_byte_lines(path, config.encoding), first - 1, None)
    records = join_lines(lines, first, is_open) if is_open else enumerate(lines, first)
    return parse_rows(config, str(path), records, parse_line, partial(sha256_of_file, path))


def parse_rows(
    config: DataConfig,
    place: str,
    items: Iterable[tuple[int, Item]],
    parse: Parse[Item],
    digest: Callable[[], str],
    kind: str = "lines",
    hint: str = "",
) -> Rows:
    """Yield ``parse(item, number)`` for each numbered item; return the report, with the ``digest`` computed at the end.

    UserError at the first malformed row unless data.malformed=skip, if more than data.max_malformed are malformed, and
    if there are no rows; then a ``hint`` suggests what the file may be.
    """
    rows, skipped, example, rest = 0, 0, None, iter(items)
    for number, item in rest:
        rows += 1
        try:
            row = parse(item, number)
        except Malformed as problem:
            match config.malformed:
                case "stop":
                    drop = f"data.malformed=skip drops and counts such {kind}"
                    others = [] if rows > 1 else islice(rest, OTHERS)
                    alone = rows > 1 or any(can_be_read(parse, other, line) for line, other in others)
                    raise UserError(f"{problem}. {advise(problem, kind, drop if alone else '')}") from None
                case "skip":
                    skipped += 1
                    example = example or problem
                    continue
                case _:
                    raise NotImplementedError(f"data.malformed={config.malformed}") from None
        yield row
    if rows == 0:
        raise UserError(f"{place} has no sentence pairs: it needs {kind} with one each{hint}")
    if example:
        refuse_too_many(config, place, kind, rows, skipped, example)
    return SourceReport(place, digest(), rows, skipped)


def can_be_read(parse: Parse[Item], item: Item, number: int) -> bool:
    """Whether a row contains a pair that is not blank."""
    try:
        return not all(map(is_blank, parse(item, number)))
    except Malformed:
        return False


def advise(problem: Malformed, kind: str, drop: str) -> str:
    """What to do about a row; ``drop`` says how to continue without it, and is empty if most rows are like that."""
    own = problem.advice() or ("" if drop else problem.for_all)
    return own or drop or f"No other of the first {kind} can be read: is the file in another form?"


def refuse_too_many(config: DataConfig, place: str, kind: str, rows: int, skipped: int, example: Malformed) -> None:
    """UserError if more rows are malformed than data.max_malformed allows, or all of them."""
    enough = math.ceil(100 * skipped / rows) / 100
    drop = f"Fix the {kind}, or drop them anyway with data.max_malformed={enough:g}"
    most = skipped == rows or (2 * skipped > rows and example.for_all)
    advice = advise(example, kind, "" if most else drop)
    if skipped == rows:
        raise UserError(f"{place} has no sentence pairs: all of its {rows} {kind} are malformed. {example}. {advice}")
    if skipped > config.max_malformed * rows:
        above = f"{skipped} of {rows} {kind} are malformed, above data.max_malformed={config.max_malformed:g}"
        raise UserError(f"{place}: {above}; the first is {example}. {advice}")
