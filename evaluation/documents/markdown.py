"""The parts of Markdown, found by markdown-it: code, links, tables and marks stay; HTML within is read as HTML."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaluation.documents.html import INLINE, html_parts
from evaluation.documents.parts import Part, parts_as

FRONT_MATTER = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
IN_BRACKETS = r"(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*"
LINK_END = re.compile(rf"\]\({IN_BRACKETS}\)|\]\[[^\]]*\]|\]", re.DOTALL)
IMAGE = re.compile(rf"!\[(?:[^\[\]\\]|\\.)*(?:{LINK_END.pattern})", re.DOTALL)
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*(?<!/)>", re.DOTALL)
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")


class UnclearError(Exception):
    """The parser's result does not tell where in the document it is from."""


def markdown_parts(document: str) -> Iterator[Part]:
    head = FRONT_MATTER.match(document)
    done = head.end() if head else 0
    yield Part("keep", document[:done])
    body = document[done:]
    starts = [done]
    for line in body.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for token in PARSER.parse(body):
        if token.map is None:
            continue
        first, last = (min(starts[line], len(document)) for line in token.map)
        if token.type == "inline":
            places = locate(token.content, document, max(done, first), last)
            if not places:
                continue
            yield Part("keep", document[done : places[0]])
            yield from inline_parts(token, document, places)
            done = places[-1] + 1
        elif token.type == "html_block":
            yield Part("keep", document[done:first])
            yield from html_parts(document[first:last])
            done = last
    yield Part("keep", document[done:])


def locate(content: str, document: str, start: int, stop: int) -> list[int]:
    """Where each character of a block's content stands: its lines lack indentation and marks of quotes."""
    places: list[int] = []
    for line in content.split("\n"):
        found = document.find(line, start, stop)
        if found < 0:
            return []
        places += range(found, found + len(line))
        start = document.find("\n", found + len(line), stop)
        places.append(start)
    return places[:-1]


def inline_parts(block: Token, document: str, places: list[int]) -> Iterator[Part]:
    """The parts of a block's content; all of it is kept if the parser does not tell where they are."""

    def raw(start: int, stop: int) -> str:
        return document[places[start] : places[stop] if stop < len(places) else places[-1] + 1]

    try:
        found, done = [], 0
        for kind, start, stop in spans(block.children or [], block.content):
            if start > done:
                found.append(Part("keep", raw(done, start)))
            found += parts_as(kind, raw(start, stop))
            done = stop
        if done < len(places):
            found.append(Part("keep", raw(done, len(places))))
        yield from found
    except UnclearError:
        yield Part("keep", raw(0, len(places)))


def spans(tokens: list[Token], content: str) -> Iterator[tuple[str, int, int]]:
    """What stands where in the content of a block. UnclearError if that is not clear."""
    done, is_address = 0, False
    for token in tokens:
        start = done
        if is_address:  # whose link_open has all of it
            is_address = token.type != "link_close"
            continue
        match token.type:
            case "text":
                kind, stop = "text", ends_with(content, start, token.content)
            case "text_special":
                is_entity = token.info == "entity"
                kind, stop = ("entity" if is_entity else "keep"), ends_with(content, start, token.markup)
            case "softbreak":
                kind, stop = "break", matched(re.compile(r"[ \t]*\n[ \t]*"), content, start)
            case "hardbreak":
                kind, stop = "keep", matched(re.compile(r"(?:[ \t]*\\|[ \t]+)\n[ \t]*"), content, start)
            case "code_inline":
                code = rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)"
                kind, stop = "keep", matched(re.compile(code, re.DOTALL), content, start)
            case "image":
                kind, stop = "keep", matched(IMAGE, content, start)
            case "html_inline":
                kind, stop = kind_of_tag(token.content), ends_with(content, start, token.content)
            case "link_open" if token.markup == "autolink":
                kind, stop, is_address = "keep", matched(re.compile(r"<[^>]*>"), content, start), True
            case "link_open":
                kind, stop = "open", ends_with(content, start, "[")
            case "link_close":
                kind, stop = "close", matched(LINK_END, content, start)
            case _ if token.nesting:
                kind, stop = ("open" if token.nesting > 0 else "close"), ends_with(content, start, token.markup)
            case _:
                raise UnclearError
        yield kind, start, stop
        done = stop


def kind_of_tag(tag: str) -> str:
    found = TAG.fullmatch(tag)
    if not found or found[2].lower() not in INLINE:
        return "keep"
    return "close" if found[1] else "open"


def ends_with(content: str, start: int, expected: str) -> int:
    if not content.startswith(expected, start):
        raise UnclearError
    return start + len(expected)


def matched(pattern: re.Pattern[str], content: str, start: int) -> int:
    found = pattern.match(content, start)
    if not found:
        raise UnclearError
    return found.end()
