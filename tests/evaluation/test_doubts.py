"""What is doubtful about a translation, by hand."""

import pytest

from evaluation.doubts import find_doubts

LACKS = "the translation lacks the number {}"


@pytest.mark.parametrize(
    ("source", "translation", "doubts"),
    [
        ("It cost 1,250 euros in 1990.", "Costó 1.250 euros en 1990.", []),
        ("It cost 1,250 euros in 1990.", "Costó 1250 euros.", [LACKS.format("1990")]),
        ("1.5 litres.", "Unos litros.", [LACKS.format("1.5")]),
        ("From 12 to 12.", "De 12 a 21.", [LACKS.format("12")]),
        ("At 2:30 on 3/4.", "A las 2.30 del 3 de abril.", []),
        ("He has 3 cats.", "Tiene tres gatos.", []),
        ("Hello.", "Hola, hola.", []),
        ("Hello.", "Hola hola hola.", ['the translation repeats "Hola"']),
        ("Hello.", "Saluda a la casa, a la casa, a la casa.", ['the translation repeats "a la casa"']),
        ("No, no, no!", "¡No, no, no!", []),
        ("", "", []),
    ],
)
def test_lost_numbers_and_repetition(source, translation, doubts):
    assert find_doubts(source, translation) == doubts
