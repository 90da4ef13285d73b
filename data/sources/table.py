"""Tables of sentence pairs: lines of cells separated by tabs.

Parsers made for tables silently repair, skip or join bad lines. Here every line is checked, and what looks like a
header, like Excel's quoting or like a column of ids stops with the setting that is meant.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from common.errors import UserError
from common.text import as_list_item, in_brief
from data.config import DataConfig
from data.sources.lines import Malformed, read_byte_lines
from data.sources.recognise import (
    Line,
    find_header,
    find_ids,
    find_quoting,
    find_separator,
    may_name_columns,
    suggest_columns,
)
from data.sources.text import Row, Rows, read_lines

WIDTH_LINES, FIRST_LINES = 100, 1000  # that show how many columns a table has, and what is in them
LONGEST = 10_000  # bytes of a line that is looked at
CELL = re.compile(r'"([^"]*(?:""[^"]*)*)"(?=\t|\Z)|((?!")[^\t]*)')


def read_tsv(config: DataConfig, path: Path) -> Rows:
    """Read the columns of the two languages, as data.columns names them.

    If it names only these two, a third column is ignored where most of the first lines have one: manythings.org puts
    the attribution there.
    """
    widths = count_widths(config, path)
    width = len(config.columns) if len(config.columns) > 2 else 2 + (widths[3] > widths[2])
    lines = read_first_lines(config, path)
    start = lines[0].number + 1 if begins_with_header(config, path, lines) else 1
    lines = [line for line in lines if line.number >= start]
    refuse_quoting(config, path, lines)
    if width > len(config.columns):
        refuse_ids(config, path, [line for line in lines if len(line.cells) == width])
    usual = max(widths, key=lambda cells: (widths[cells], cells == width), default=width)
    other_table = describe_other_table(config, width, [line for line in lines if len(line.cells) == usual])
    first, second = map(config.columns.index, config.languages)
    separator = find_separator(lines)
    tabs = f"Its lines have {separator} in place of tabs: save it as tab-separated text (.tsv)" if separator else ""
    quoted = may_be_quoted(config)

    def parse(line: str) -> Row:
        cells = split_quoted(line) if quoted and '"' in line else line.split("\t")
        if len(cells) == width:
            return cells[first], cells[second]
        if other_table and len(cells) == usual:
            raise Malformed(*other_table)
        found = describe_tabs(cells)
        needed = {2: "one, between the two sentences", 3: "two"}.get(width, width - 1)
        raise Malformed(f"{found}; it needs exactly {needed}", for_all=tabs)

    return read_lines(config, path, parse, start)


def describe_tabs(cells: Sequence[str]) -> str:
    """How many tabs separate the cells of a line."""
    return f"{len(cells) - 1 or 'no'} tab{'s' * (len(cells) > 2)} in the line"


def may_be_quoted(config: DataConfig) -> bool:
    """Whether quotation marks around a cell are taken away."""
    match config.quoting:
        case "csv":
            return True
        case "stop" | "keep":
            return False
        case _:
            raise NotImplementedError(f"data.quoting={config.quoting}")


def split_quoted(line: str) -> list[str]:
    """The cells of a line, some in quotation marks, which are taken away; Malformed if one is not closed."""
    cells, start = [], 0
    while start <= len(line):
        cell = CELL.match(line, start)
        if cell is None:
            raise Malformed(
                "a quotation mark opens a cell and none closes it on the line (data.quoting=keep takes marks for text)"
            )
        cells.append(cell[2] if cell[1] is None else cell[1].replace('""', '"'))
        start = cell.end() + 1
    return cells


def count_widths(config: DataConfig, path: Path) -> Counter[int]:
    """How many of the first lines have how many cells, without blank ones."""
    lines = islice(read_byte_lines(path, config.encoding), WIDTH_LINES)
    return Counter(line.count(b"\t") + 1 for line in lines if line.strip())


def read_first_lines(config: DataConfig, path: Path) -> list[Line]:
    """The first lines that are not blank, as far as they can be decoded; very long ones have no cells."""
    lines = enumerate(islice(read_byte_lines(path, config.encoding), FIRST_LINES), start=1)
    texts = ((number, line[:LONGEST].decode(errors="replace").rstrip("\r\n"), len(line)) for number, line in lines)
    return [Line(number, text.split("\t") * (size <= LONGEST)) for number, text, size in texts if text.strip()]


def begins_with_header(config: DataConfig, path: Path, lines: Sequence[Line]) -> bool:
    """Whether the first line with text is a header to skip; UserError if data.header or data.columns contradict it."""
    named = find_header(lines, config.languages) if lines else None
    if named is None:
        return False
    places = [named.index(language) if language in named else None for language in config.languages]
    other = None not in places and places != [config.columns.index(language) for language in config.languages]
    columns = as_setting([name if name in config.languages else "_" for name in named])
    header = f"{path}:{lines[0].number}: a header ({in_brief(', '.join(lines[0].cells))})"
    match config.header:
        case "keep":
            return False
        case "skip" if other:
            asked = as_setting(config.columns)
            raise UserError(f"{header} that does not agree with data.columns={asked}: set data.columns={columns}")
        case "skip":
            return True
        case "stop":
            skip = "data.header=skip" + f" data.columns={columns}" * other
            raise UserError(f"{header} in place of a pair: {skip} leaves it out, data.header=keep takes it for a pair")
        case _:
            raise NotImplementedError(f"data.header={config.header}")


def describe_first_pair(config: DataConfig, path: Path) -> str | None:
    """A line to warn with if data.header=skip finds no header; None if it does, or another setting holds."""
    match config.header:
        case "skip":
            lines = read_first_lines(config, path)
            if not lines or find_header(lines, config.languages) or not may_name_columns(lines[0].cells):
                return None
            first = in_brief(", ".join(lines[0].cells))
            return (
                f"{path}: its first line ({first}) does not look like a header and is a pair, although "
                "data.header=skip; take the line out if it is a header"
            )
        case "stop" | "keep":
            return None
        case _:
            raise NotImplementedError(f"data.header={config.header}")


def refuse_quoting(config: DataConfig, path: Path, lines: Sequence[Line]) -> None:
    """UserError if cells are quoted as in CSV and data.quoting does not say what to do with that."""
    if config.quoting == "stop" and (found := find_quoting(lines)):
        number, cell = found
        raise UserError(
            f"{path}:{number}: cells in quotation marks, as Excel writes them, such as {in_brief(cell)}: "
            "data.quoting=csv takes the marks away, data.quoting=keep takes them for text"
        )


def refuse_ids(config: DataConfig, path: Path, lines: Sequence[Line]) -> None:
    """UserError if one of the first two of three columns does not look like text."""
    if lines and any(ids := find_ids(lines)[:2]):
        place = ids.index(True)
        example = ", ".join(in_brief(line.cells[place], 20) for line in lines[:3])
        columns = suggest_columns(lines, config.languages)
        raise UserError(
            f"{path}:{lines[0].number}: column {place + 1} of 3 does not look like text ({example}): "
            f"data.columns={as_setting(columns)} says what the columns hold, "
            f"data.columns={as_setting([*config.columns, '_'])} that it is {config.columns[place]} all the same"
            f"{of_all_files(config)}"
        )


def describe_other_table(config: DataConfig, width: int, usual: Sequence[Line]) -> tuple[str, str] | None:
    """What to say of a line with the usual number of columns, if data.columns names another; and the advice."""
    found = len(usual[0].cells) if usual else width
    if found == width or found < 2:
        return None
    names = as_setting(suggest_columns(usual, config.languages))
    message = f"{found} columns, as in most lines, which data.columns={as_setting(config.columns)} does not name"
    return message, f"data.columns={names} names them in order, with _ for one to skip{of_all_files(config)}"


def of_all_files(config: DataConfig) -> str:
    """What to add to a setting for one of several sources."""
    return "; such settings hold for all files of a run" if len(config.train) > 1 else ""


def as_setting(columns: Sequence[str]) -> str:
    return f"[{','.join(map(as_list_item, columns))}]"
