"""Text files of sentence pairs: JSON lines and two parallel files of lines, plain or gzip, and what tables share."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

from common.errors import UserError
from common.files import sha256, sha256_of_file
from common.text import in_brief
from data.config import DataConfig
from data.report import SourceReport
from data.sources.lines import Malformed, decode_line, is_blank, read_byte_lines

Item = TypeVar("Item")
Row = tuple[str, str]
Rows = Generator[Row, None, SourceReport]  # yields both columns of each row, returns the report
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # NUL, or half of a surrogate pair from a JSON escape


class RowReader:
    """Iterates over rows; ``report`` is set after the last one."""

    report: SourceReport

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        self.report = yield from self._rows


def read_jsonl(config: DataConfig, path: Path) -> Rows:
    """Read one JSON object per line, with the two languages as keys or inside a ``translation``."""

    columns = config.languages

    def parse(line: str) -> Row:
        try:
            row = json.loads(line, object_pairs_hook=object_of)
        except (ValueError, RecursionError):
            raise Malformed("not a JSON object") from None
        row = row.get("translation", row) if isinstance(row, dict) else row
        values = [row.get(column) if isinstance(row, dict) else None for column in columns]
        if not all(map(is_text, values)):
            raise Malformed(f"the object has no texts {columns[0]} and {columns[1]}; data.columns names its keys")
        return str(values[0]), str(values[1])

    return read_lines(config, path, parse)


def object_of(items: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; Malformed if a key repeats, where Python would silently use the last value."""
    row = dict(items)
    if len(row) < len(items):
        repeated = next(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        raise Malformed(f"the key {in_brief(repeated)} stands twice in an object")
    return row


def read_parallel(config: DataConfig, first: Path, second: Path, name: str) -> Rows:
    """Read two files of equally many lines, where line i of one translates line i of the other.

    They are reported as one file ``name`` in their folder; its SHA-256 is that of their two SHA-256s.
    """

    def parse(lines: tuple[bytes | None, bytes | None], number: int) -> Row:
        if lines[0] is None or lines[1] is None:
            short, long = (first, second) if lines[0] is None else (second, first)
            raise UserError(f"{short} ends after {number - 1} lines, but {long} has more: they are not parallel")
        return decode_line(lines[0], first, number, encoding), decode_line(lines[1], second, number, encoding)

    encoding, together = config.encoding, str(first.with_name(name))
    lines = zip_longest(read_byte_lines(first, encoding), read_byte_lines(second, encoding))
    rows, skipped = yield from parse_rows(config, together, lines, parse)
    if rows == 0:
        raise UserError(f"{first} is empty; it needs a sentence a line")
    digest = sha256(f"{sha256_of_file(first)} {sha256_of_file(second)}")
    return SourceReport(together, digest, rows, skipped)


def read_lines(config: DataConfig, path: Path, parse: Callable[[str], Row], first: int = 1) -> Rows:
    """Read one pair per line from line ``first`` on; ``parse`` raises Malformed. A blank line is a pair of nothing."""

    def parse_line(line: bytes, number: int) -> Row:
        text = decode_line(line, path, number, config.encoding)
        try:
            return parse(text)
        except Malformed as problem:
            if is_blank(text):
                return "", ""
            raise Malformed(f"{path}:{number}: {problem}", problem.advice()) from None

    lines = islice(read_byte_lines(path, config.encoding), first - 1, None)
    rows, skipped = yield from parse_rows(config, str(path), lines, parse_line, first)
    if rows == 0:
        raise UserError(f"{path} is empty; it needs one sentence pair a line")
    return SourceReport(str(path), sha256_of_file(path), rows, skipped)


def parse_rows(
    config: DataConfig,
    place: str,
    items: Iterable[Item],
    parse: Callable[[Item, int], Row],
    first: int = 1,
    kind: str = "lines",
) -> Generator[Row, None, tuple[int, int]]:
    """Yield ``parse(item, number)``, numbered from ``first``; return how many rows were read and were malformed.

    UserError at the first malformed row unless data.malformed=skip, and if more than data.max_malformed are.
    """
    number, skipped, example = first - 1, 0, None
    for number, item in enumerate(items, start=first):
        try:
            row = parse(item, number)
        except Malformed as problem:
            match config.malformed:
                case "stop":
                    advice = problem.advice() or f"data.malformed=skip drops and counts such {kind}"
                    raise UserError(f"{problem}. {advice}") from None
                case "skip":
                    skipped += 1
                    example = example or problem
                    continue
                case _:
                    raise NotImplementedError(f"data.malformed={config.malformed}") from None
        yield row
    rows = number - first + 1
    if example and skipped > config.max_malformed * rows:
        enough = math.ceil(100 * skipped / rows) / 100
        advice = example.advice() or f"Mend the {kind}, or drop them all the same with data.max_malformed={enough:g}"
        raise UserError(
            f"{place}: {skipped} of {rows} {kind} are malformed, above data.max_malformed={config.max_malformed:g}; "
            f"the first is {example}. {advice}"
        )
    return rows, skipped


def is_text(value: object) -> bool:
    """Whether a value is a string that UTF-8 can encode, without NUL."""
    return isinstance(value, str) and not UNWRITABLE.search(value)
