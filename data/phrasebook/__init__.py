"""The embedded corpus, written for this project: everyday phrases written by hand and sentences of a grammar.

``phrasebook:phrases`` and ``phrasebook:grammar`` are sources for ``data.train``, ``data.valid`` and ``data.test``.
"""

from common.errors import UserError
from common.files import sha256
from data.corpus.report import SourceReport
from data.pairs import Pairs, as_tsv
from data.phrasebook.cached import phrasebook
from data.sources.text import Rows


def read(name: str, split: str, columns: list[str]) -> Rows:
    """Read ``phrasebook:PART`` or ``phrasebook:PART:SPLIT``; ``split`` is the default for SPLIT."""
    if sorted(columns) != ["en", "es"]:
        raise UserError(f"the phrasebook's columns are en and es: data.columns cannot be {' and '.join(columns)}")
    part, chosen = (*name.split(":", 2), "", "")[1:3]
    parts, chosen = phrasebook(), chosen or split
    if (part, chosen) not in parts:
        known = ", ".join(f"phrasebook:{part}:{split}" for part, split in sorted(parts))
        raise UserError(f"data.{split}={name}: there is no such part with a split {chosen}; there are {known}")
    english, spanish = parts[part, chosen].sources, parts[part, chosen].targets
    yield from zip(*((english, spanish) if columns[0] == "en" else (spanish, english)), strict=True)
    return SourceReport(f"phrasebook:{part}:{chosen}", sha256(as_tsv(Pairs(english, spanish))), len(english))
