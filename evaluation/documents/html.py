"""The parts of an HTML page, found by Python's parser: text, tags within sentences, and everything else, to keep."""

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from typing import Any

from common.errors import write_note
from evaluation.documents.parts import Part, parts_as

INLINE = frozenset("a abbr b bdi bdo big cite del dfn em font i ins mark q s small span strong sub sup u".split())
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
NO_TEXT = frozenset("script style pre code kbd samp var textarea svg math template noscript".split())


class Reader(HTMLParser):
    """Records where each element of the page starts, and its kind."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=False)
        self.starts, self.kinds = list[int](), list[str]()
        self._lines = [0, *accumulate(len(line) + 1 for line in page.split("\n"))]
        self.page = page
        self.within: list[str] = []  # open elements whose content is not to be translated
        self.feed(page)
        self.close()

    def parts(self) -> Iterator[Part]:
        bounds = pairwise([*self.starts, len(self.page)])
        yield Part("keep", self.page[: self.starts[0] if self.starts else len(self.page)])
        for kind, (start, stop) in zip(self.kinds, bounds, strict=True):
            yield from parts_as(kind, self.page[start:stop])

    def _note(self, kind: str) -> None:
        line, column = self.getpos()
        self.starts.append(self._lines[line - 1] + column)
        self.kinds.append("keep" if self.within else kind)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._note("open" if tag in INLINE else "keep")
        if self.within[-1:] == [tag] or tag in NO_TEXT or (is_kept(attributes) and tag not in VOID):
            self.within.append(tag)
            self.kinds[-1] = "keep"

    def handle_endtag(self, tag: str) -> None:
        self._note("close" if tag in INLINE else "keep")
        if self.within[-1:] == [tag]:
            self.within.pop()

    def handle_data(self, data: str) -> None:
        self._note("text")
        beginning = self.page[self.starts[-1] : self.starts[-1] + 2]
        if self.kinds[-1] == "text" and re.fullmatch("<[!?/a-zA-Z]", beginning):  # of what does not end
            self.within.append(beginning[1])
            self.kinds[-1] = "keep"

    def handle_entityref(self, name: str) -> None:
        self._note("entity")

    def keep(self, *_: Any, **__: Any) -> None:
        self._note("keep")

    handle_charref = handle_entityref
    parse_marked_section = HTMLParser.parse_bogus_comment  # "<![if" of Internet Explorer, and "<![" in a text
    handle_comment = handle_decl = handle_pi = unknown_decl = handle_startendtag = keep


def is_kept(attributes: Iterable[tuple[str, str | None]]) -> bool:
    return any(name == "translate" and (value or "").lower() == "no" for name, value in attributes)


def page_parts(page: str) -> Iterator[Part]:
    """The parts of a whole page."""
    reader = Reader(page)
    if reader.within:
        write_note(f"note: the page does not close its last <{reader.within[0]}; nothing after it is translated")
    return reader.parts()


def html_parts(block: str) -> Iterator[Part]:
    """The parts of a block of HTML, such as one in Markdown; others may close its elements."""
    return Reader(block).parts()
