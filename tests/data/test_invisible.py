"""Characters that nobody sees: gone from what a model reads unless they shape the letter before them."""

import unicodedata

import pytest

from data.invisible import is_blank, without_invisible
from data.pairs import normalise

NAMED = "\u00ad\u200b\u200c\u200d\u200e\u2060\ufe0f"


@pytest.mark.parametrize("character", NAMED, ids=unicodedata.name)
def test_each_is_gone_among_latin_letters_and_alone(character):
    for text in ("The{} white cat", "The wh{}ite cat", "{}The white cat", "The white cat{0}{0}", "The white {0}{0}cat"):
        assert without_invisible(text.format(character)) == "The white cat"
    assert is_blank(f" {character}\t{character}") and normalise(f"{character} {character}") == ""
    assert normalise(f"The{character} cat") == f"The{character} cat"  # training text stays as it is


def test_whatever_unicode_calls_a_format_is_blank():
    """But Arabic's and other signs that are drawn around digits or letters."""
    drawn = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9\ufffa\ufffb\U000110bd\U000110cd"
    formats = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"]
    hieroglyphs = {chr(code) for code in range(0x13430, 0x13440)}
    assert {each for each in formats if not is_blank(each)} - hieroglyphs == set(drawn)


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👩\u200d❤\ufe0f\u200d👨", "❤\ufe0f", "ᠠ\u180b", ""])
def test_what_shapes_a_letter_or_symbol_stays(text):
    assert without_invisible(text) == text
    assert not is_blank(f"x{text}")
