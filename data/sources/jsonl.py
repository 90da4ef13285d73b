"""JSON lines: one object per line, with the two languages as keys. Parquet files share the checks."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from common.files import LONGEST_LINE
from common.text import as_list_item, in_brief
from data.config import DataConfig
from data.sources.lines import Malformed
from data.sources.recognise import name_of
from data.sources.text import Row, Rows, read_lines

ONE_A_LINE = 'JSON lines have one object per line: {"en": "…", "es": "…"}'
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # NUL, or half of a surrogate pair from a JSON escape
IN_WORDS = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}


def read_jsonl(config: DataConfig, path: Path) -> Rows:
    """Read one JSON object per line, with the two languages as keys or, if one is missing, inside ``translation``."""

    def parse(line: str) -> Row:
        try:
            row = json.loads(line, object_pairs_hook=object_of)
        except (ValueError, RecursionError):
            raise Malformed("not a JSON object", for_all=ONE_A_LINE) from None
        if not isinstance(row, dict):
            raise Malformed(f"{name_type(row)}, not an object", for_all=ONE_A_LINE)
        if not set(config.languages) <= row.keys() and "translation" not in config.languages:
            row = row.get("translation", row)
        if not isinstance(row, dict):
            raise Malformed(f"translation is {name_type(row)}, not an object")
        if missing := [name for name in config.languages if name not in row]:
            advice = suggest(config, [name for name, value in row.items() if is_text(value)])
            keys = in_brief(", ".join(row)) or "nothing"
            raise Malformed(f"the object has no {' and no '.join(missing)}, only {keys}", for_all=advice)
        return check_texts(config, (row[first], row[second]))

    first, second = config.languages
    return read_lines(config, path, parse)


def check_texts(config: DataConfig, cells: tuple[Any, Any]) -> Row:
    """The cells of both languages; Malformed if one is not text."""
    for name, cell in zip(config.languages, cells, strict=True):
        if not is_text(cell):
            raise Malformed(f"{name} is {name_type(cell)}, not plain text")
        if len(cell) > LONGEST_LINE:
            raise Malformed(f"{name} has more than {LONGEST_LINE:,} characters")
    return cells


def suggest(config: DataConfig, names: Sequence[str]) -> str:
    """The settings for reading two keys or columns by their own names; empty unless there are two."""
    if len(names) < 2:
        return ""
    by_side = {side: name for name in reversed(names) if (side := name_of(name, config.languages))}
    by_order = dict(zip(config.languages, names, strict=False))
    sides = ("source", "target") if {"source", "target"} <= by_side.keys() else (config.source, config.target)
    source, target = ((by_side if set(sides) <= by_side.keys() else by_order)[side] for side in sides)
    columns = ",".join(as_list_item(name) for name in names if name in (source, target))
    sides = quote(f"data.source={source}"), quote(f"data.target={target}")
    return in_brief(f"data.columns=[{columns}] {' '.join(sides)} names them", 300)


def name_type(value: object) -> str:
    """The type of a JSON or Parquet value, in words."""
    if isinstance(value, str):
        return "text with NUL or half a surrogate pair" if UNWRITABLE.search(value) else "text"
    return IN_WORDS.get(type(value), "a number")


def object_of(items: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object; Malformed if a key repeats, because Python would silently use the last value."""
    row = dict(items)
    if len(row) < len(items):
        repeated = next(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        raise Malformed(f"the key {in_brief(repeated)} occurs twice in an object")
    return row


def is_text(value: object) -> bool:
    """Whether a value is a string that UTF-8 can encode, without NUL."""
    return isinstance(value, str) and not UNWRITABLE.search(value)
