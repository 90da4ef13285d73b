"""Cells of the data card."""

from data.card.tables import in_words


def test_reasons_without_a_pair_are_not_told():
    assert in_words({"empty": 0, "mismatched": 1200, "over_long": 1}) == "1,200 mismatched, 1 over_long"
    assert in_words({"empty": 0}) == "none"
