"""The embedded corpus, written for this project: everyday phrases written by hand, and sentences from a grammar.

``phrasebook:phrases`` and ``phrasebook:grammar`` are sources for ``data.train``, ``data.valid`` and ``data.test``.
phrasebook.md describes the table.
"""

import functools
import lzma
from pathlib import Path

from common.errors import UserError
from common.files import sha256
from data.sources.report import SourceReport
from data.sources.text import Rows

TABLE = Path(__file__).with_name("phrasebook.tsv.xz")


def read_phrasebook(name: str, split: str, languages: tuple[str, str]) -> Rows:
    """Read ``phrasebook:PART`` or ``phrasebook:PART:SPLIT``; ``split`` is the default for SPLIT."""
    if sorted(languages) != ["en", "es"]:
        raise UserError(f"the phrasebook's columns are en and es: data.columns cannot be {' and '.join(languages)}")
    _, part, chosen = (*name.split(":", 2), "", "")[:3]
    sets, wanted = phrasebook(), f"{part}:{chosen or split}"
    if wanted not in sets:
        known = ", ".join(f"phrasebook:{name}" for name in sorted(sets))
        raise UserError(f"data.{split}={name}: there is no such part with a split {chosen or split}; known are {known}")
    rows = [(english, spanish) for english, spanish, _ in sets[wanted]]
    yield from rows if languages[0] == "en" else ((spanish, english) for english, spanish in rows)
    return SourceReport(f"phrasebook:{wanted}", sha256("".join("\t".join(row) + "\n" for row in rows)), len(rows))


def combinations(set_name: str) -> dict[str, list[str]]:
    """The combinations of construction and word that a held-out sentence tests, by English and by Spanish sentence.

    ``set_name`` is the set's name in reports, such as phrasebook:grammar:test; for other sets, the result is empty.
    """
    corpus, _, name = set_name.partition(":")
    found = {}
    for english, spanish, group in phrasebook().get(name, []) if corpus == "phrasebook" else []:
        construction, _, words = group.partition(" × ")
        found[english] = found[spanish] = [f"{construction} × {word}" for word in words.split(", ") if word]
    return found


@functools.cache
def phrasebook() -> dict[str, list[tuple[str, str, str]]]:
    """All pairs by set, such as grammar:train: English, Spanish, group. Held-out sets share no sentence with others."""
    sets: dict[str, list[tuple[str, str, str]]] = {}
    with lzma.open(TABLE, "rt", encoding="utf-8") as lines:
        next(lines)  # the names of the columns
        for line in lines:
            english, spanish, name, group = line.rstrip("\n").split("\t")
            sets.setdefault(name, []).append((english, spanish, group))
    return sets
