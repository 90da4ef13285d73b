"""Tables of sentence pairs: lines of cells separated by tabs or, in CSV, by commas or semicolons.

Table parsers silently repair, skip or join bad lines; in most, an unclosed quotation mark turns all lines after it into
one cell. Here every line is checked, and anything that looks like a header, like Excel's quoting or like a column of
ids raises an error that names the right setting.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from common.errors import UserError
from common.files import LONGEST_LINE
from common.text import as_list_item, in_brief
from data.config import DataConfig
from data.sources import recognise
from data.sources.jsonl import suggest
from data.sources.lines import Malformed, join_lines, read_byte_lines
from data.sources.recognise import TableRow
from data.sources.text import Row, Rows, read_lines

WIDTH_ROWS, FIRST_LINES = 100, 1000  # to find how many columns a table has, and what they contain
LONGEST = 10_000  # characters; longer rows are not examined
NAMES = {"\t": "tab", ",": "comma", ";": "semicolon"}

csv.field_size_limit(LONGEST_LINE)


class Cells(NamedTuple):
    """How to split the lines of a table: the separator, and whether to remove quotation marks around cells."""

    separator: str
    quoted: bool

    def split(self, line: str) -> list[str]:
        """The cells of a line; Malformed if a quotation mark opens a cell and none closes it."""
        if not self.quoted or '"' not in line:
            return line.split(self.separator)
        try:
            return split_quoted(line, self.separator)
        except csv.Error:
            problem = "a quotation mark opens a cell and none closes it (data.quoting=keep reads marks as text)"
            raise Malformed(problem) from None

    def is_open(self, text: str) -> bool:
        """Whether the last cell has an opening quotation mark and continues after the line break."""
        try:
            split_quoted(text, self.separator)
        except csv.Error as error:
            return str(error) == "unexpected end of data"
        return False


def read_table(config: DataConfig, path: Path) -> Rows:
    """Read the columns of the two languages, as named by data.columns or, in CSV, by the first line.

    If data.columns names only these two, a third column is ignored if most of the first lines have one: manythings.org
    puts the attribution there.
    """
    cells = find_cells(config, path)
    rows = read_first_rows(config, path, cells)
    columns, start = read_header(config, path, rows)
    rows = [row for row in rows if row.number >= start]
    if config.quoting == "stop" and not cells.quoted and (found := recognise.find_quoting(rows)):
        problem = f"cells in quotation marks, as Excel writes them, such as {in_brief(found[1])}"
        advice = "data.quoting=csv removes the marks, data.quoting=keep reads them as text"
        raise UserError(f"{path}:{found[0]}: {problem}: {advice}")
    widths = Counter(len(row.cells) for row in rows[:WIDTH_ROWS])
    by_order = columns is config.columns
    width = len(columns) + (by_order and len(columns) == 2 and widths[3] > widths[2])
    if width > len(columns):
        refuse_ids(config, path, [row for row in rows if len(row.cells) == width])
    usual = max(widths, key=lambda cells: (widths[cells], cells == width), default=width)
    other_table = describe_other_table(config, width, [row for row in rows if len(row.cells) == usual and by_order])
    first, second = map(columns.index, config.languages)
    name = NAMES[cells.separator]
    other = recognise.find_separator(rows, cells.separator)
    advice = f"Its lines have {other} instead of {name}s: save it as tab-separated text (.tsv)" if other else ""

    def parse(line: str) -> Row:
        found = cells.split(line)
        if len(found) == width:
            return found[first], found[second]
        if other_table and len(found) == usual:
            raise Malformed(*other_table)
        needed = {2: "one, between the two sentences", 3: "two"}.get(width, width - 1)
        raise Malformed(f"{count_separators(found, name)}; it needs exactly {needed}", for_all=advice)

    return read_lines(config, path, parse, start, cells.is_open if cells.quoted else None)


def is_csv(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".csv")


def count_separators(cells: Sequence[str], name: str = "tab") -> str:
    """How many separators are between the cells of a line."""
    return f"{len(cells) - 1 or 'no'} {name}{'s' * (len(cells) > 2)} in the line"


def split_quoted(line: str, separator: str) -> list[str]:
    """The cells of a line, without the quotation marks around some; csv.Error if a mark opens one and none closes it.

    A carriage return, which is in no valid line, would end a cell, so it becomes a space.
    """
    return next(csv.reader([line.replace("\r", " ")], delimiter=separator, strict=True))


def find_cells(config: DataConfig, path: Path) -> Cells:
    """Tabs separate cells; in CSV, the separator in the header (semicolons in Excel's), or commas without a header."""
    quoted = {"stop": is_csv(path), "csv": True, "keep": False}[config.quoting]
    if not is_csv(path):
        return Cells("\t", quoted)
    kinds = [Cells(separator, quoted) for separator in (",", ";", "\t")]
    named = (kind for kind in kinds if recognise.find_header(read_first_rows(config, path, kind), config.languages))
    return next(named, kinds[0])


def read_first_rows(config: DataConfig, path: Path, cells: Cells) -> list[TableRow]:
    """The first rows that are not blank, as far as they can be decoded and split; very long rows have no cells."""
    lines = islice(read_byte_lines(path, config.encoding), FIRST_LINES)
    rows = []
    for number, record in join_lines(lines, 1, cells.is_open) if cells.quoted else enumerate(lines, 1):
        text = record[:LONGEST].decode(errors="replace").rstrip("\r\n")
        if text.strip():
            try:
                found = cells.split(text)
            except Malformed:
                found = text.split(cells.separator)
            after = number + max(1, record.count(b"\n"))
            rows.append(TableRow(number, after, found * (len(record) < LONGEST)))
    return rows


def read_header(config: DataConfig, path: Path, rows: Sequence[TableRow]) -> tuple[list[str], int]:
    """What each column contains, and the number of the line after the header, or 1.

    The header of a CSV file names the columns; UserError if it is missing or names a language twice. In other tables,
    data.columns names them and a header is skipped; UserError if it contradicts data.header or data.columns.
    """
    if not rows:
        return config.columns, 1
    named = recognise.find_header(rows, config.languages)
    columns = [name if name in config.languages else "_" for name in named or ()]
    places = [columns.index(language) for language in config.languages if language in columns]
    differs = len(places) == 2 and places != [config.columns.index(language) for language in config.languages]
    place, first = f"{path}:{rows[0].number}", f"({in_brief(', '.join(rows[0].cells))})"
    match config.header:
        case "keep":
            return config.columns, 1
        case "stop" | "skip" if is_csv(path) and len(places) == 2:
            if len(columns) - columns.count("_") > 2:
                raise UserError(f"{place}: the first line {first} names a language twice: rename one of the columns")
            return columns, rows[0].next
        case "stop" if is_csv(path):
            names = suggest(config, rows[0].cells) if recognise.may_name_columns(rows[0].cells) else ""
            problem = f"{place}: the first line {first} does not name the columns {' and '.join(config.languages)}"
            advice = "or, if it is a pair, data.header=skip reads columns in the order of data.columns"
            raise UserError(f"{problem}: {names or 'change it to these names'}, {advice}")
        case "stop" if named:
            skip = "data.header=skip" + f" data.columns={as_setting(columns)}" * differs
            advice = f"{skip} leaves it out, data.header=keep reads it as a pair"
            raise UserError(f"{place}: a header {first} instead of a pair: {advice}")
        case "skip" if differs:
            problem = f"a header {first} that does not agree with data.columns={as_setting(config.columns)}"
            raise UserError(f"{place}: {problem}: set data.columns={as_setting(columns)}")
        case "stop" | "skip":
            return config.columns, rows[0].next if named else 1
        case _:
            raise NotImplementedError(f"data.header={config.header}")


def describe_first_pair(config: DataConfig, path: Path) -> str | None:
    """A warning if data.header=skip finds no header; None if it does, or with another setting."""
    if config.header != "skip":
        return None
    rows = read_first_rows(config, path, find_cells(config, path))
    if not rows or recognise.find_header(rows, config.languages) or not recognise.may_name_columns(rows[0].cells):
        return None
    line = f"its first line ({in_brief(', '.join(rows[0].cells))}) does not look like a header and is a pair"
    return f"{path}: {line}, although data.header=skip; remove the line if it is a header"


def refuse_ids(config: DataConfig, path: Path, rows: Sequence[TableRow]) -> None:
    """UserError if one of the first two of three columns does not look like text."""
    if rows and any(ids := recognise.find_ids(rows)[:2]):
        place = ids.index(True)
        example = ", ".join(in_brief(row.cells[place], 20) for row in rows[:3])
        problem = f"{path}:{rows[0].number}: column {place + 1} of 3 does not look like text ({example})"
        columns = as_setting(recognise.suggest_columns(rows, config.languages))
        same = f"data.columns={as_setting([*config.columns, '_'])} if it is {config.columns[place]} after all"
        raise UserError(f"{problem}: set data.columns={columns}, or {same}")


def describe_other_table(config: DataConfig, width: int, usual: Sequence[TableRow]) -> tuple[str, str] | None:
    """The message and the advice for lines with the usual number of columns, if data.columns names another number."""
    found = len(usual[0].cells) if usual else width
    if found == width or found < 2:
        return None
    names = as_setting(recognise.suggest_columns(usual, config.languages))
    message = f"{found} columns, as in most lines, which data.columns={as_setting(config.columns)} does not name"
    return message, f"data.columns={names} names them in order, with _ for one to skip"


def as_setting(columns: Sequence[str]) -> str:
    return f"[{','.join(map(as_list_item, columns))}]"
