"""The parts of Markdown, found by markdown-it: code, links, tables and marks stay; embedded HTML is parsed as HTML."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from common.errors import write_note
from evaluation.documents.html import INLINE, NO_TEXT, VOID, html_parts
from evaluation.documents.parts import Part, parts_as

FRONT_MATTER = re.compile(r"---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
IN_BRACKETS = r"(?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*"
LINK_END = rf"\]\({IN_BRACKETS}\)|\]\[[^\]]*\]|\]"
IMAGE = rf"!\[(?:[^\[\]\\]|\\.)*(?:{LINK_END})"
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*(?<!/)>", re.DOTALL)
NOT_TRANSLATED = re.compile(r"\stranslate\s*=\s*[\"']?no\b", re.IGNORECASE)
GITHUB = re.compile(r"\[\^[^\]\s]+\](?!\():?|\A\[(?:[ xX]|![A-Z]+)\](?:\s|\Z)")  # a footnote; a task or an alert


def keep_github(state: StateInline, silent: bool) -> bool:
    """A rule of the parser for what GitHub adds to Markdown."""
    found = GITHUB.match(state.src, state.pos)
    if found and not silent:
        state.push("github", "", 0).content = found[0]
    state.pos = found.end() if found else state.pos
    return found is not None


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
PARSER.inline.ruler.before("link", "github", keep_github)


class UnclearError(Exception):
    """The parser's result does not show where in the document it comes from."""


def markdown_parts(document: str) -> Iterator[Part]:
    head = FRONT_MATTER.match(document)
    done = head.end() if head else 0
    yield Part("keep", document[:done])
    body = document[done:]
    starts = [done, *(done + end.end() for end in re.finditer(r"\r\n?|\n", body)), len(document)]
    for token in PARSER.parse(body):
        if token.map is None:
            continue
        first, last = (min(starts[line], len(document)) for line in token.map)
        if token.type == "inline":
            places = locate(token.content, document, max(done, first), last)
            if not places:
                if token.content:  # a table has empty cells, too
                    note_unclear(document, first)
                continue
            yield Part("keep", document[done : places[0]])
            yield from inline_parts(token, document, places)
            done = places[-1] + 1
        elif token.type == "html_block":
            yield Part("keep", document[done:first])
            raw, done = document[first:last], last
            if [*map(str.strip, raw.splitlines())] == [*map(str.strip, token.content.splitlines())]:
                yield from (part._replace(form="html") for part in html_parts(raw))
            else:  # the block has marks of a quotation in it
                note_unclear(document, first)
                yield Part("keep", raw)
    yield Part("keep", document[done:])


def note_unclear(document: str, place: int) -> None:
    line = document.count("\n", 0, place) + 1
    write_note(f"note: the block in line {line} stays as it is, as its markup is unclear")


def locate(content: str, document: str, start: int, stop: int) -> list[int]:
    """The position of each character of a block's content, from which indentation and quote marks were removed."""
    places: list[int] = []
    for line in content.split("\n"):
        found = document.find(line, start, stop)
        if found < 0:
            return []
        places += range(found, found + len(line))
        end = re.compile(r"[\r\n]").search(document, found + len(line), stop)
        start = end.start() if end else -1
        places.append(start)
    return places[:-1]


def inline_parts(block: Token, document: str, places: list[int]) -> Iterator[Part]:
    """The parts of a block's content; all of it is kept if the positions of the parts are unclear."""

    def raw(start: int, stop: int) -> str:
        return document[places[start] : places[stop] if stop < len(places) else places[-1] + 1]

    try:
        found, done = [], 0
        for kind, start, stop in spans(block.children or [], block.content):
            if start > done:
                found.append(Part("keep", raw(done, start)))
            found += parts_as(kind, raw(start, stop)) if start < stop else []  # the parser has empty texts, too
            done = stop
        if done < len(places):
            found.append(Part("keep", raw(done, len(places))))
        yield from found
    except UnclearError:
        note_unclear(document, places[0])
        yield Part("keep", raw(0, len(places)))


def spans(tokens: list[Token], content: str) -> Iterator[tuple[str, int, int]]:
    """The kind, start and end of each token in a block's content. UnclearError if they are unclear."""
    done, is_address, kept = 0, False, ""  # the HTML element whose content is kept
    for token in tokens:
        if is_address:  # link_open has matched all of it
            is_address = token.type != "link_close"
            continue
        is_address = token.markup == "autolink"
        kind, pattern = kind_and_spelling(token)
        found = re.compile(pattern, re.DOTALL).match(content, done)
        if not found:
            raise UnclearError
        yield "keep" if kept else kind, done, found.end()
        done, tag = found.end(), TAG.fullmatch(token.content) if token.type == "html_inline" else None
        if tag and (name := tag[2].lower()) == kept and tag[1]:
            kept = ""
        elif tag and not kept and opens_kept(tag):
            kept = name


def kind_and_spelling(token: Token) -> tuple[str, str]:
    """The kind of part that a token is, and a pattern for its text. UnclearError for an unknown token."""
    match token.type:
        case "text":
            return "text", re.escape(token.content)
        case "text_special":
            return "entity" if token.info == "entity" else "keep", re.escape(token.markup)
        case "softbreak":
            return "break", r"[ \t]*\n[ \t]*"
        case "hardbreak":
            return "keep", r"(?:[ \t]*\\|[ \t]+)\n[ \t]*"
        case "code_inline":
            return "keep", rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)"
        case "image":
            return "keep", IMAGE
        case "github":
            return "keep", re.escape(token.content)
        case "html_inline":
            return kind_of_tag(token.content), re.escape(token.content)
        case "link_open":
            return ("keep", r"<[^>]*>") if token.markup == "autolink" else ("open", r"\[")
        case "link_close":
            return "close", LINK_END
        case _ if token.nesting:
            return "open" if token.nesting > 0 else "close", re.escape(token.markup)
        case _:
            raise UnclearError


def opens_kept(tag: re.Match[str]) -> bool:
    """Whether a tag opens an element with content that is not to be translated."""
    name = tag[2].lower()
    return not tag[1] and (name in NO_TEXT or (name not in VOID and NOT_TRANSLATED.search(tag[0]) is not None))


def kind_of_tag(tag: str) -> str:
    found = TAG.fullmatch(tag)
    if not found or found[2].lower() not in INLINE:
        return "keep"
    return "close" if found[1] else "open"
