"""What a table's first lines show: a header, cells quoted as in CSV, and columns that are no text."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

NAMES = {
    "en": {"en", "eng", "english", "inglés", "ingles"},
    "es": {"es", "spa", "spanish", "español", "espanol", "castellano"},
    "source": {"source", "src"},
    "target": {"target", "tgt", "trg"},
}
BESIDES = {"sentence", "text", "translation", "phrase", "us", "uk", "gb", "mx"}  # as in en_US and "English sentence"
QUOTED = re.compile(r'"[^"]*(?:""[^"]*)*"')
NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
HASH_OR_ADDRESS = re.compile(r"(?=\D*\d)[\da-f-]{8,}|https?://\S+", re.IGNORECASE)
NEARLY_ALL, FEW = 0.9, 0.05
ENOUGH = 10  # lines that show that a column is always the same


class Line(NamedTuple):
    """A line of a table; ``number`` counts from 1."""

    number: int
    cells: list[str]


def find_header(cells: Sequence[str], languages: Sequence[str]) -> list[str] | None:
    """What each cell names: a language, "source", "target" or nothing (""). None if the cells are no header."""
    named = [name_of(cell, languages) for cell in cells]
    return named if set(languages) <= set(named) or {"source", "target"} <= set(named) else None


def name_of(cell: str, languages: Sequence[str]) -> str:
    text = cell.strip().strip('"').casefold()
    for language in languages:
        if text == language.casefold():
            return language
    words = set(re.findall(r"[^\W_]+", text)) if re.fullmatch(r"[\w\s()-]{1,30}", text) else set()
    found = [name for name, spellings in NAMES.items() if words & spellings and words <= spellings | BESIDES]
    return found[0] if found else ""


def find_quoting(lines: Sequence[Line]) -> tuple[int, str] | None:
    """The first cell that is quoted as in CSV, and the number of its line; None if quotation marks are text here.

    Excel quotes cells with a comma or a quotation mark, other programs all cells or those with a quotation mark. Where
    quotation marks are text, cells have some inside, or a comma without them, and no cell has all of them doubled.
    """
    cells = [(line.number, cell) for line in lines for cell in line.cells]
    marked = [(number, cell) for number, cell in cells if '"' in cell]
    quoted = [(number, cell) for number, cell in marked if QUOTED.fullmatch(cell)]
    if not quoted or len(quoted) < NEARLY_ALL * len(marked):
        return None
    doubled = sum('""' in cell[1:-1] for _, cell in quoted)
    with_comma = sum("," in cell for _, cell in quoted)
    bare_commas = sum("," in cell for _, cell in cells if '"' not in cell)
    by_commas = with_comma >= 3 and with_comma >= NEARLY_ALL * len(quoted) and bare_commas <= FEW * with_comma
    return quoted[0] if doubled or by_commas or len(quoted) >= NEARLY_ALL * len(cells) else None


def find_ids(lines: Sequence[Line]) -> list[bool]:
    """Whether each column holds no sentences but ids, numbers, hashes, addresses, or always the same word."""
    return [holds_ids(column) for column in zip(*(line.cells for line in lines), strict=True)]


def holds_ids(column: Sequence[str]) -> bool:
    values = [cell.strip().strip('"') for cell in column]
    shape, times = Counter(map(shape_of, values)).most_common(1)[0]
    value, repeated = Counter(values).most_common(1)[0]
    constant = len(values) >= ENOUGH and repeated >= NEARLY_ALL * len(values) and len(value.split()) == 1
    return constant or ("0" in shape and len(shape.split()) == 1 and times >= NEARLY_ALL * len(values))


def shape_of(cell: str) -> str:
    """A cell with 0 for each of its numbers, or for all of it; ids of one kind have the same shape."""
    return "0" if HASH_OR_ADDRESS.fullmatch(cell) else NUMBER.sub("0", cell)


def suggest_columns(lines: Sequence[Line], languages: Sequence[str]) -> list[str]:
    """Names for the columns of lines that are equally wide: the languages for the first two with text, _ for others."""
    ids = find_ids(lines)
    text = [index for index, is_id in enumerate(ids) if not is_id]
    first, second = text[:2] if len(text) >= 2 else (0, 1)
    return [languages[(first, second).index(index)] if index in (first, second) else "_" for index in range(len(ids))]
