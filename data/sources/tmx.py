"""TMX, the exchange format of translation memories: XML with a <tu> for each pair, in any number of languages.

Only XML's five predefined entities are expanded: no entity can exhaust memory or read other files.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lxml import etree

from common.errors import UserError
from common.files import sha256_of_file
from common.text import in_brief
from data.config import DataConfig
from data.sources.jsonl import suggest
from data.sources.lines import Malformed, explain_read_errors, open_bytes
from data.sources.text import Row, Rows, parse_rows

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang", "lang"  # in TMX 1.4, and in earlier versions
CODES = {"bpt", "ept", "it", "ph", "ut"}  # inline elements whose content is markup, not text
Unit = dict[str, Any]  # the first segment of each language of a <tu>


def read_tmx(config: DataConfig, path: Path) -> Rows:
    """Read a pair from each unit: for each column, the first variant in its language or a form of it."""

    def parse(unit: Unit, number: int) -> Row:
        try:
            first, second = (find_segment(config, unit, language) for language in config.languages)
            return text_of(first), text_of(second)
        except Malformed as problem:
            raise Malformed(f"{path}:{number}: {problem}", problem.advice(), problem.for_all) from None

    digest, hint = partial(sha256_of_file, path), ": is it TMX, with <tu>?"
    return parse_rows(config, str(path), read_units(path), parse, digest, "units", hint)


def read_units(path: Path) -> Iterator[tuple[int, Unit]]:
    """Each unit with its line number; UserError names the line at which a file is broken."""
    safe = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
    with explain_read_errors(path), open_bytes(path) as file:
        found = etree.iterparse(file, tag="{*}tu", **safe)
        try:
            for _, unit in found:
                yield unit.sourceline, segments_of(unit)
                while unit.getprevious() is not None:  # units that were read would stay in memory
                    del unit.getparent()[0]
        except etree.XMLSyntaxError:
            problem = next(iter(found.error_log), None)
            line, message = (problem.line, problem.message) if problem else (1, "the file is empty")
            raise UserError(f"{path}:{line}: broken XML: {in_brief(message, 200)}; export it again") from None


def segments_of(unit: Any) -> Unit:
    segments: Unit = {}
    for variant in unit.iterfind("{*}tuv"):
        language = next(filter(None, map(variant.get, LANGUAGE)), "")
        segments.setdefault(language, variant.find("{*}seg"))
    return segments


def find_segment(config: DataConfig, unit: Unit, wanted: str) -> Any:
    """The segment in a language, or else in a form of it: en-US for en. Malformed names the unit's languages."""
    name, forms = subtags(wanted), [(subtags(language), segment) for language, segment in unit.items()]
    exact = [segment for form, segment in forms if form == name]
    if found := exact or [segment for form, segment in forms if form[: len(name)] == name]:
        return found[0]
    told = in_brief(", ".join(unit)) or "nothing"
    languages = list(dict.fromkeys(form[0] for form, _ in forms))
    raise Malformed(f"the unit has no {wanted}, only {told}", for_all=suggest(config, languages))


def subtags(language: str) -> list[str]:
    """The parts of a language tag, such as en and us."""
    return language.casefold().replace("_", "-").split("-")


def text_of(element: Any) -> str:
    """The text of a segment without inline codes; the text in <hi>, which highlights, stays."""
    if element is None:
        raise Malformed("a variant has no <seg>")
    text = element.text or ""
    for child in element:
        if child.tag is etree.Entity:
            raise Malformed(f"the entity {in_brief(child.text)} is not expanded: write its text instead")
        if isinstance(child.tag, str) and etree.QName(child).localname not in CODES:  # else a comment, or a code
            text += text_of(child)
        text += child.tail or ""
    return text
