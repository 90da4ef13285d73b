"""What is typed in capitals is read as the sentence that it would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.capitals import in_sentence_case


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("HELLO.", "Hello."),
        ("MAY I COME IN? YES, I'M READY!", "May I come in? Yes, I'm ready!"),
        ("¿DÓNDE ESTÁ? ¡AQUÍ!", "¿Dónde está? ¡Aquí!"),
        ("¡ÉL ES MR. SMITH!", "¡Él es mr. Smith!"),
        ("CALLE 66, ΟΔΟΣ", "Calle 66, οδος"),
    ],
)
def test_by_hand(typed, read):
    assert in_sentence_case(typed) == read


@pytest.mark.parametrize("text", ["NATO", "I'M.", "THE USA and Spain", "Hello.", "1,250 €", "漢字", "مرحبا", ""])
def test_names_and_what_has_small_letters_or_none_stay(text):
    assert in_sentence_case(text) == text


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"])).filter(lambda text: not text.isupper()))
def test_other_text_stays(text):
    assert in_sentence_case(text) == text
