"""Text of others is safe to print."""

import json
import sys
import unicodedata

from common.text import escape_controls, in_brief, visible


def test_a_corpus_cannot_steer_the_terminal():
    assert visible("¡Olé!\x1b[2J a\u200bb") == "¡Olé!<U+001B>[2J a<U+200B>b"


def test_what_steers_a_terminal_or_the_direction_of_writing_is_escaped_and_json_stays_the_same():
    """All of Unicode's control characters, those of direction and the two line ends that only it has; no joiners."""
    directions = "LRE RLE LRO RLO PDF LRI RLI FSI PDI".split()
    for letter in map(chr, range(sys.maxunicode + 1)):
        steers = unicodedata.category(letter) == "Cc" and letter not in "\t\n"
        steers |= unicodedata.bidirectional(letter) in directions or letter in "\u061c\u200e\u200f\u2028\u2029"
        assert escape_controls(letter) == (f"\\u{ord(letter):04x}" if steers else letter)
        assert json.loads(escape_controls(json.dumps(letter, ensure_ascii=False))) == letter
    assert escape_controls("a line\r\nover\rwritten") == "a line\r\nover\\u000dwritten"


def test_long_text_is_cut():
    assert in_brief("a" * 100) == "a" * 100
    assert in_brief("\x1b" + "a" * 100) == "<U+001B>" + "a" * 99 + "…"
    assert in_brief("abc", 2) == "ab…"
