"""Text files of sentence pairs: tab-separated, JSON lines and two files of lines, plain or gzip.

Every line is checked before it is believed: parsers made for tables repair, skip or join bad lines without a word.
"""

import codecs
import gzip
import hashlib
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from common.errors import UserError
from common.text import in_brief

Parser = Callable[[str], tuple[str, str]]  # raises Malformed
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # a NUL, or half of a character that JSON spelled in two


@dataclass(frozen=True)
class SourceReport:
    """What was read: file or dataset, the SHA-256 of its bytes, its rows, and how many of them were skipped."""

    file: str
    sha256: str
    rows: int
    malformed: int = 0


Rows = Generator[tuple[str, str], None, SourceReport]  # both columns, row by row, and at the end what was read


class Reading:
    """An iterator of rows, which has their ``report`` once the last row is read."""

    report: SourceReport

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.report = yield from self._rows


class Malformed(Exception):
    """A line that does not hold a sentence pair, and why."""


def read_tsv(path: Path, malformed: str) -> Rows:
    """Two columns split by a tab: no quoting, no header. Where most of the first lines have three, the last is dropped.

    manythings.org puts the attribution there.
    """
    counts = [line.count(b"\t") for line in islice(lines_of(path), 100)]
    tabs = 2 if counts.count(2) > counts.count(1) else 1

    def parse(line: str) -> tuple[str, str]:
        cells = line.split("\t")
        if len(cells) != tabs + 1:
            found = f"{len(cells) - 1 or 'no'} tab{'s' * (len(cells) > 2)} in the line"
            raise Malformed(f"{found}; it needs exactly {'one, between the two sentences' if tabs == 1 else 'two'}")
        return cells[0], cells[1]

    return read_lines(path, parse, malformed)


def read_jsonl(path: Path, columns: list[str], malformed: str) -> Rows:
    """A JSON object a line, with the two languages as keys, or with a ``translation`` that has them."""

    def parse(line: str) -> tuple[str, str]:
        try:
            row = json.loads(line, object_pairs_hook=without_doubled_keys)
        except (ValueError, RecursionError):
            raise Malformed("not a JSON object") from None
        row = row.get("translation", row) if isinstance(row, dict) else row
        values = [row.get(column) if isinstance(row, dict) else None for column in columns]
        if not all(map(is_text, values)):
            raise Malformed(f"the object has no texts {columns[0]} and {columns[1]}; data.columns names its keys")
        return str(values[0]), str(values[1])

    return read_lines(path, parse, malformed)


def without_doubled_keys(items: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; Malformed if a key stands in it twice, of which Python would keep the last without a word."""
    row = dict(items)
    if len(row) < len(items):
        doubled = next(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        raise Malformed(f"the key {in_brief(doubled)} stands twice in an object")
    return row


def read_parallel(first: Path, second: Path, name: str, malformed: str) -> Rows:
    """Two files in which line i of the one translates line i of the other; both must have as many lines.

    They are reported as one file of their folder, ``name``, with the SHA-256 of both their SHA-256s.
    """
    number = kept = 0
    for number, pair in enumerate(zip_longest(lines_of(first), lines_of(second)), start=1):
        if None in pair:
            short, long = (first, second) if pair[0] is None else (second, first)
            raise UserError(f"{short} ends after {number - 1} lines, but {long} has more: they are not parallel")
        try:
            texts = text_of(pair[0], first, number), text_of(pair[1], second, number)
        except Malformed as problem:
            refuse_unless_skipped(str(problem), malformed)
            continue
        kept += 1
        yield texts
    refuse_empty(first, number, "a sentence")
    digest = hashlib.sha256(f"{sha256_of(first)} {sha256_of(second)}".encode()).hexdigest()
    return SourceReport(str(first.with_name(name)), digest, number, number - kept)


def read_lines(path: Path, parse: Parser, malformed: str) -> Rows:
    """A pair a line."""
    number = kept = 0
    for number, line in enumerate(lines_of(path), start=1):
        try:
            texts = parse_line(line, path, number, parse)
        except Malformed as problem:
            refuse_unless_skipped(str(problem), malformed)
            continue
        kept += 1
        yield texts
    refuse_empty(path, number, "one sentence pair")
    return SourceReport(str(path), sha256_of(path), number, number - kept)


def parse_line(line: bytes, path: Path, number: int, parse: Parser) -> tuple[str, str]:
    text = text_of(line, path, number)
    try:
        return parse(text)
    except Malformed as problem:
        raise Malformed(f"{path}:{number}: {problem}") from None


def refuse_unless_skipped(problem: str, malformed: str) -> None:
    if malformed == "stop":
        raise UserError(f"{problem}. data.malformed=skip drops and counts such lines")


def refuse_empty(path: Path, lines: int, content: str) -> None:
    if lines == 0:
        raise UserError(f"{path} is empty; it needs {content} a line")


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, which end at line feeds only; a name in .gz is unpacked on the way."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            yield from file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"cannot read {path}: not a whole gzip file ({error})") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error


def text_of(line: bytes, path: Path, number: int) -> str:
    """The text of one line. Lines end in LF or CRLF, and the last one may end in neither."""
    body = line.removesuffix(b"\n").removesuffix(b"\r")
    problem = flaw_of_bytes(body, number)
    if problem:
        raise Malformed(f"{path}:{number}: {problem}")
    return body.decode()


def flaw_of_bytes(body: bytes, number: int) -> str | None:
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
    """Whether a cell of a table, or a value of an object, is a text that can be encoded."""
    return isinstance(value, str) and not UNWRITABLE.search(value)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file as it lies there, as sha256sum tells it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
