"""Text files of sentence pairs: tab-separated, JSON lines and two parallel files of lines, plain or gzip.

Every line is checked strictly: parsers made for tables silently repair, skip or join bad lines.
"""

import codecs
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import TypeVar

from common.errors import UserError
from common.files import sha256, sha256_of_file
from common.text import in_brief
from data.report import SourceReport

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


class Malformed(Exception):
    """A row without a sentence pair; the message says why."""


def read_tsv(path: Path, malformed: str) -> Rows:
    """Read two tab-separated columns, without quoting or header.

    A third column is ignored if most of the first lines have one: manythings.org puts the attribution there.
    """
    counts = [line.count(b"\t") for line in islice(read_byte_lines(path), 100)]
    tabs = 2 if counts.count(2) > counts.count(1) else 1

    def parse(line: str) -> Row:
        cells = line.split("\t")
        if len(cells) != tabs + 1:
            found = f"{len(cells) - 1 or 'no'} tab{'s' * (len(cells) > 2)} in the line"
            raise Malformed(f"{found}; it needs exactly {'one, between the two sentences' if tabs == 1 else 'two'}")
        return cells[0], cells[1]

    return read_lines(path, parse, malformed)


def read_jsonl(path: Path, columns: list[str], malformed: str) -> Rows:
    """Read one JSON object per line, with the two languages as keys or inside a ``translation``."""

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

    return read_lines(path, parse, malformed)


def object_of(items: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; Malformed if a key repeats, where Python would silently use the last value."""
    row = dict(items)
    if len(row) < len(items):
        repeated = next(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        raise Malformed(f"the key {in_brief(repeated)} stands twice in an object")
    return row


def read_parallel(first: Path, second: Path, name: str, malformed: str) -> Rows:
    """Read two files of equally many lines, where line i of one translates line i of the other.

    They are reported as one file ``name`` in their folder; its SHA-256 is that of their two SHA-256s.
    """

    def parse(lines: tuple[bytes | None, bytes | None], number: int) -> Row:
        if lines[0] is None or lines[1] is None:
            short, long = (first, second) if lines[0] is None else (second, first)
            raise UserError(f"{short} ends after {number - 1} lines, but {long} has more: they are not parallel")
        return decode_line(lines[0], first, number), decode_line(lines[1], second, number)

    lines = zip_longest(read_byte_lines(first), read_byte_lines(second))
    rows, skipped = yield from parse_rows(lines, parse, malformed)
    if rows == 0:
        raise UserError(f"{first} is empty; it needs a sentence a line")
    digest = sha256(f"{sha256_of_file(first)} {sha256_of_file(second)}")
    return SourceReport(str(first.with_name(name)), digest, rows, skipped)


def read_lines(path: Path, parse: Callable[[str], Row], malformed: str) -> Rows:
    """Read one pair per line; ``parse`` raises Malformed."""

    def parse_line(line: bytes, number: int) -> Row:
        text = decode_line(line, path, number)
        try:
            return parse(text)
        except Malformed as problem:
            raise Malformed(f"{path}:{number}: {problem}") from None

    rows, skipped = yield from parse_rows(read_byte_lines(path), parse_line, malformed)
    if rows == 0:
        raise UserError(f"{path} is empty; it needs one sentence pair a line")
    return SourceReport(str(path), sha256_of_file(path), rows, skipped)


def parse_rows(
    items: Iterable[Item], parse: Callable[[Item, int], Row], malformed: str, kind: str = "lines"
) -> Generator[Row, None, tuple[int, int]]:
    """Yield ``parse(item, number)``, numbered from 1; return how many rows were read and how many were malformed.

    ``malformed`` is data.malformed: UserError at the first malformed row unless it is "skip".
    """
    number = skipped = 0
    for number, item in enumerate(items, start=1):
        try:
            row = parse(item, number)
        except Malformed as problem:
            if malformed == "stop":
                raise UserError(f"{problem}. data.malformed=skip drops and counts such {kind}") from None
            skipped += 1
            continue
        yield row
    return number, skipped


def read_byte_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, split at line feeds only; a file named .gz is decompressed."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            yield from file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def decode_line(line: bytes, path: Path, number: int) -> str:
    """The text of a line. Lines end in LF or CRLF; the last one may end in neither."""
    body = line.removesuffix(b"\n").removesuffix(b"\r")
    if problem := find_flaw(body, number):
        raise Malformed(f"{path}:{number}: {problem}")
    return body.decode()


def find_flaw(body: bytes, number: int) -> str | None:
    """Why these bytes are not a line of text, or None."""
    if number == 1 and body.startswith(codecs.BOM_UTF8):
        return "begins with a byte order mark; save the file as UTF-8 without one"
    if number == 1 and body.startswith(b"\x1f\x8b"):
        return "this is gzip; its name must end in .gz"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"invalid UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
    if b"\0" in body:
        return "a NUL character in the line; remove it"
    return "a carriage return inside the line; end lines with LF or CRLF" if b"\r" in body else None


def is_text(value: object) -> bool:
    """Whether a value is a string that UTF-8 can encode, without NUL."""
    return isinstance(value, str) and not UNWRITABLE.search(value)
