"""Translate a whole document: its text is translated, and everything else stays where it was."""

import html
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from evaluation.documents.html import page_parts
from evaluation.documents.markdown import markdown_parts
from evaluation.documents.parts import Part, refuse_nul
from evaluation.documents.text import plain_parts
from evaluation.documents.units import Marks, Unit, find_units, place_marks
from evaluation.forced_scores import align
from evaluation.translate import Ensemble, OnProgress, Translator

ENDS = tuple(".!?…:;\"'”’»)。！？؟۔।｡」』）")
SPECIAL = re.compile(r"[\\`*_\[\]<>]")  # in Markdown


class Format(NamedTuple):
    """How to split a kind of document into parts, and how to escape text in it."""

    parts: Callable[[str], Iterator[Part]]
    spell: Callable[[str], str]


FORMATS = {
    "text": Format(plain_parts, str),
    "markdown": Format(markdown_parts, partial(SPECIAL.sub, r"\\\g<0>")),
    "html": Format(page_parts, partial(html.escape, quote=False)),
}

Find = Callable[[list[Unit]], Iterator[tuple[str, Marks | None]]]


class Done(NamedTuple):
    """A kept piece of the document, or a unit with its translation and the places of its marks in it."""

    piece: Unit | str
    text: str
    marks: Marks


def translate_document(
    translator: Translator, params: Ensemble, document: str, form: str, on_progress: OnProgress = None
) -> tuple[str, list[tuple[str, str]]]:
    """Translate a document in one of ``FORMATS``; return it, and each of its texts with its translation.

    A byte order mark and the ends of lines stay as they are. UserError for a NUL byte.
    """
    refuse_nul(document)
    text = document.removeprefix("\ufeff")
    ends = set(re.findall(r"\r\n?|\n", text))
    end = ends.pop() if len(ends) == 1 else "\n"
    parts = FORMATS[form].parts(text.replace(end, "\n"))
    found, texts = translate_parts(translator, params, parts, form, on_progress)
    return document[: len(document) - len(text)] + found.replace("\n", end), texts


def translate_parts(
    translator: Translator, params: Ensemble, parts: Iterable[Part], form: str, on_progress: OnProgress = None
) -> tuple[str, list[tuple[str, str]]]:
    """The document from its parts, with their text translated, and each text with its translation."""

    def find(units: list[Unit]) -> Iterator[tuple[str, Marks | None]]:
        found = translator.translate(params, [unit.text for unit in units], on_progress=on_progress)
        marked = [each for unit, each in zip(units, found, strict=True) if unit.spans()]
        aligned = iter(align(translator, params, marked))
        for unit, each in zip(units, found, strict=True):
            # A model trained on sentences adds a full stop to headings and table cells, too.
            text = each.text if unit.text.rstrip()[-1:] in ENDS else each.text.removesuffix(".")
            yield text, place_marks(unit, text, next(aligned)) if unit.spans() else []

    done = list(translate_pieces(list(find_units(parts)), find))
    texts = [(each.piece.text.strip(), each.text) for each in done if isinstance(each.piece, Unit)]
    return "".join(each.piece if isinstance(each.piece, str) else render(each, form) for each in done), texts


def translate_pieces(pieces: list[Unit | str], find: Find) -> Iterator[Done]:
    """If the marks of a unit cannot be placed in its translation, translate it from mark to mark."""
    found = find([piece for piece in pieces if isinstance(piece, Unit)])
    for piece in pieces:
        text, marks = ("", []) if isinstance(piece, str) else next(found)
        if isinstance(piece, Unit) and marks is None:
            yield from translate_pieces(list(piece.between_marks()), find)
        else:
            yield Done(piece, text, marks or [])


def render(done: Done, form: str) -> str:
    """The translation escaped for the document, with its marks and the white space around it."""
    assert isinstance(done.piece, Unit)
    embedded = next((part.form for part in done.piece.parts if part.form), form)
    source, spell, spelled, start = done.piece.text, FORMATS[embedded].spell, "", 0
    for place, mark in done.marks:
        spelled, start = spelled + spell(done.text[start:place]) + mark, place
    spelled += spell(done.text[start:])
    if form == "text" and "\n" in source.strip():
        spelled = textwrap.fill(spelled, max(map(len, source.split("\n"))), break_long_words=False)
    before, after = source[: len(source) - len(source.lstrip())], source[len(source.rstrip()) :]
    return f"{before}{spelled}{after}"
