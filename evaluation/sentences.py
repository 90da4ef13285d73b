"""Sentences and translations kept by an evaluation, so that runs can be compared later without translating again."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from common.errors import UserError
from common.files import open_regular


@dataclass(frozen=True)
class Sentence:
    """A distinct source of a held-out set, its references, and its translation as the search found it."""

    source: str
    references: list[str]
    translation: str
    tokens: list[str]  # of the translation, without EOS, in the spelling of scripts/score.py
    log_prob: float
    score: float  # log_prob after the search's normalization
    ended: bool  # by EOS, before the length limit
    pieces: int  # into which the source was split; 0 for an empty one


def as_lines(sentences: Sequence[Sentence]) -> str:
    """One line of JSON per sentence."""
    return "".join(json.dumps(asdict(sentence), ensure_ascii=False) + "\n" for sentence in sentences)


def read_sentences(path: Path) -> list[Sentence]:
    """Read the output of ``as_lines``. UserError for a missing, empty or damaged file."""
    try:
        with open_regular(path) as file:
            lines = file.read().split(b"\n")[:-1]
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): evaluate the run again") from error
    if not lines:
        raise UserError(f"{path} is empty: evaluate the run again")
    return [_parse(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]


def _parse(line: bytes, place: str) -> Sentence:
    try:
        facts = json.loads(line)
        found = Sentence(**{field.name: facts[field.name] for field in fields(Sentence)})
        "".join([found.source, found.translation, *found.references, *found.tokens])  # TypeError for anything but text
        return found
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{place}: damaged: evaluate the run again") from error
