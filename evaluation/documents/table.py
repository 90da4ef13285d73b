"""CSV tables: the cells of some columns are translated, all others stay."""

import csv
import io
from collections.abc import Sequence
from difflib import get_close_matches

from common.errors import UserError
from evaluation.documents.parts import Part, refuse_nul
from evaluation.documents.text import plain_parts
from evaluation.documents.translate import translate_parts
from evaluation.translate import Ensemble, OnProgress, Translator

SEPARATORS = ",;\t"
END = "\0"  # marks the end of a cell, between the parts of all cells

Rows = list[list[str]]


def translate_table(
    translator: Translator, params: Ensemble, table: str, columns: Sequence[str], on_progress: OnProgress = None
) -> tuple[str, list[tuple[str, str]]]:
    """The table with ``columns`` translated, and each text with its translation; UserError if broken or without one."""
    mark, text = ("\ufeff", table[1:]) if table.startswith("\ufeff") else ("", table)
    first = text.partition("\n")[0]
    separator = max(SEPARATORS, key=first.count)
    rows = read_rows(text, separator)
    places = find_columns(rows[0] if rows else [], columns)
    cells = [(row, place) for row in rows[1:] for place in places if place < len(row)]
    parts = (part for row, place in cells for part in (*plain_parts(row[place]), Part("keep", END)))
    found, texts = translate_parts(translator, params, parts, "text", on_progress)
    for (row, place), cell in zip(cells, found.split(END), strict=False):  # nothing follows the last END
        row[place] = cell
    return mark + write_rows(rows, separator, like=text), texts


def read_rows(text: str, separator: str) -> Rows:
    refuse_nul(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return list(reader)
    except csv.Error as error:
        raise UserError(f"line {reader.line_num}: {error}") from None


def write_rows(rows: Rows, separator: str, like: str) -> str:
    """Write the rows with the line ending of the header of ``like``, and quote all cells if its first one is quoted."""
    lines = io.StringIO(like, newline="").readlines()
    reader = csv.reader(lines, delimiter=separator)
    next(reader, None)
    header = lines[reader.line_num - 1] if lines else ""
    output, end = io.StringIO(), header[len(header.rstrip("\r\n")) :] or "\n"
    dialect = csv.unix_dialect if like.startswith('"') else csv.excel  # quotes all cells, or only those that need it
    csv.writer(output, dialect, delimiter=separator, lineterminator=end).writerows(rows)
    return output.getvalue() if like.endswith(("\n", "\r")) else output.getvalue().removesuffix(end)


def find_columns(header: list[str], names: Sequence[str]) -> list[int]:
    known = f"this table has {', '.join(header) or 'no header'}"
    if not names:
        raise UserError(f"--format csv needs the columns to translate, as --columns NAME,…: {known}")
    for name in names:
        if name not in header:
            near = get_close_matches(name, header, 1)
            raise UserError(f"--columns: there is no {name}{f'; the nearest is {near[0]}' if near else ''}; {known}")
    return list(map(header.index, names))
