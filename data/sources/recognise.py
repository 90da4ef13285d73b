"""Recognise, from a table's first lines, a header, cells quoted as in CSV, and columns without text."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

NAMES = {
    "en": {"en", "eng", "english", "inglés", "ingles"},
    "es": {"es", "spa", "spanish", "español", "espanol", "castellano"},
    "source": {"source", "src", "original"},
    "target": {"target", "tgt", "trg", "translation", "traducción", "traduccion"},
}
BESIDES = {"sentence", "text", "texto", "translation", "phrase", "us", "uk", "gb", "mx"}  # as in en_US, "English text"
NUMBERED = re.compile(r"(?:sentence|text|texto|phrase|frase)[\s_-]*([12])")
COLUMN_NAME = re.compile(r"[^.!?…¿¡]{1,30}")
QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
HASH_OR_ADDRESS = re.compile(r"(?=\D*\d)[\da-f-]{8,}|https?://\S+", re.IGNORECASE)
SEPARATORS = {"|||": "|||", ";": "semicolons", ",": "commas", "\t": "tabs"}  # and their names in messages
NEARLY_ALL, FEW = 0.9, 0.05
ENOUGH = 10  # lines needed to see that a column is constant or repeats few values
LONGEST_VALUE = 3  # words, as in an author's name; a sentence may well have dozens of translations


class TableRow(NamedTuple):
    """A row of a table, the number of its first line, counted from 1, and the number of the line after it."""

    number: int
    next: int
    cells: list[str]


def find_header(rows: Sequence[TableRow], languages: Sequence[str]) -> list[str] | None:
    """What each cell of the first line names: a language, "source", "target" or nothing (""). None: there is no header.

    If most lines name languages, the names are codes beside the text, not a header.
    """
    if not rows:
        return None
    named, *others = [names_in(row.cells, languages) for row in rows]
    codes = 2 * sum(other is not None for other in others) > len(others)
    return None if codes else named


def names_in(cells: Sequence[str], languages: Sequence[str]) -> list[str] | None:
    """What each cell names; None if they do not name two sides. Next to one language, "translation" is the other."""
    named = [name_of(cell, languages) for cell in cells]
    found, roles = set(languages).intersection(named), {"source", "target"}.intersection(named)
    if len(found) == len(roles) == 1:
        (other,) = set(languages) - found
        return [other if name in roles else name for name in named]
    return named if len(found) == 2 or len(roles) == 2 else None


def may_name_columns(cells: Sequence[str]) -> bool:
    """Whether all cells are short and none ends like a sentence, so that they may be a header with unknown names."""
    return all(COLUMN_NAME.fullmatch(cell.strip()) for cell in cells)


def name_of(cell: str, languages: Sequence[str]) -> str:
    text = cell.strip().strip('"').casefold()
    for language in languages:
        if text == language.casefold():
            return language
    if numbered := NUMBERED.fullmatch(text):
        return "source" if numbered[1] == "1" else "target"
    words = set(re.findall(r"[^\W_]+", text)) if re.fullmatch(r"[\w\s()-]{1,30}", text) else set()
    found = [name for name, spellings in NAMES.items() if words & spellings and words <= spellings | BESIDES]
    return found[0] if found else ""


def find_quoting(rows: Sequence[TableRow]) -> tuple[int, str] | None:
    """The first cell that is quoted as in CSV, with the number of its line; None if quotation marks are text here.

    Excel quotes cells with a comma or a quotation mark; other programs quote all cells or those with a quotation mark.
    If quotation marks are text, some cells have them inside or have unquoted commas, and no cell doubles all of them.
    """
    cells = [(row.number, cell) for row in rows for cell in row.cells]
    marked = [(number, cell) for number, cell in cells if '"' in cell]
    quoted = [(number, cell) for number, cell in marked if QUOTED.fullmatch(cell)]
    if not quoted or len(quoted) < NEARLY_ALL * len(marked):
        return None
    doubled = sum('""' in cell[1:-1] for _, cell in quoted)
    with_comma = sum("," in cell for _, cell in quoted)
    bare_commas = sum("," in cell for _, cell in cells if '"' not in cell)
    by_commas = with_comma >= 3 and with_comma >= NEARLY_ALL * len(quoted) and bare_commas <= FEW * with_comma
    return quoted[0] if doubled or by_commas or len(quoted) >= NEARLY_ALL * len(cells) else None


def find_separator(rows: Sequence[TableRow], wanted: str) -> str:
    """The separator, in words, that nearly all rows have instead of the wanted one; empty if there is none."""
    texts = [row.cells[0] for row in rows if len(row.cells) == 1]
    enough = max(1, NEARLY_ALL * len(rows))
    marks = (mark for mark in SEPARATORS if mark != wanted and sum(mark in text for text in texts) >= enough)
    return SEPARATORS.get(next(marks, ""), "")


def find_ids(rows: Sequence[TableRow]) -> list[bool]:
    """Whether each column has, instead of sentences, ids, numbers, addresses, language codes or few short values."""
    return [holds_ids(column) for column in zip(*(row.cells for row in rows), strict=True)]


def holds_ids(column: Sequence[str]) -> bool:
    values = [cell.strip().strip('"') for cell in column]
    # Replace each number, or a whole hash or address, by 0: ids of one kind then have the same shape.
    shapes = ("0" if HASH_OR_ADDRESS.fullmatch(value) else NUMBER.sub("0", value) for value in values)
    shape, times = Counter(shapes).most_common(1)[0]
    value, repeated = Counter(values).most_common(1)[0]
    constant = repeated >= NEARLY_ALL * len(values) and len(value.split()) == 1
    if len(values) >= ENOUGH and (constant or repeats_few(values)):
        return True
    codes = len(values) > 1 and all(name_of(value, ()) in ("en", "es") for value in values)
    return codes or ("0" in shape and len(shape.split()) == 1 and times >= NEARLY_ALL * len(values))


def repeats_few(values: Sequence[str]) -> bool:
    """Whether a few short values, such as domains or authors, repeat many times."""
    short = sum(len(value.split()) <= LONGEST_VALUE for value in values)
    return 10 * len(set(values)) <= len(values) and short >= NEARLY_ALL * len(values)


def suggest_columns(rows: Sequence[TableRow], languages: Sequence[str]) -> list[str]:
    """Names for the columns of equally wide rows: the languages for the first two with text, _ for the others."""
    ids = find_ids(rows)
    text = [index for index, is_id in enumerate(ids) if not is_id]
    first, second = text[:2] if len(text) >= 2 else (0, 1)
    return [languages[(first, second).index(index)] if index in (first, second) else "_" for index in range(len(ids))]
