"""The parts of a document in order: their ``raw`` texts, joined, are the document."""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from common.errors import UserError

Kind = Literal["text", "open", "close", "keep"]


class Part(NamedTuple):
    """Text to translate, a mark around a span of it (``<b>``, ``**``), or something to keep, which ends a sentence."""

    kind: Kind
    raw: str
    text: str = ""  # ``raw`` with entities resolved
    form: str = ""  # how to escape its translation, if not like the document's


# Never translated: addresses, paths and file names.
ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s<>\"]*[^\s<>\".,;:!?)'»”]|www\.[\w.-]+\.\w+(?:/\S*\w)?|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.\w+)+"
)
FORMS_OF_TEXT = "'\"‘’“”«»–—…-"  # characters that are part of a sentence although they are not letters


def refuse_nul(document: str) -> None:
    if "\0" in document:
        line = document[: document.index("\0")].count("\n") + 1
        raise UserError(f"line {line} has a NUL byte: this is not a text file")


def parts_as(kind: str, raw: str) -> Iterator[Part]:
    """The parts of what a parser reports as text, an entity, a line break within text, a mark, or something to keep."""
    match kind:
        case "text":
            yield from text_parts(raw)
        case "entity":  # text if it is a letter or punctuation; any other entity, such as &nbsp;, is kept
            text = html.unescape(raw)
            is_text = len(text) == 1 and (text.isalnum() or text in FORMS_OF_TEXT)
            yield Part("text", raw, text) if is_text else Part("keep", raw)
        case "break":
            yield Part("text", raw, " ")
        case "open" | "close" | "keep":
            yield Part(kind, raw)
        case _:
            raise NotImplementedError(f"a part that is {kind}")


def text_parts(raw: str) -> Iterator[Part]:
    """Text without markup; addresses are kept."""
    done = 0
    for found in ADDRESS.finditer(raw):
        yield from (Part("text", raw[done : found.start()], raw[done : found.start()]), Part("keep", found[0]))
        done = found.end()
    yield Part("text", raw[done:], raw[done:])
