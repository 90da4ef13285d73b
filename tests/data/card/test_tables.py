"""Cells of the data card."""

from data.card.tables import format_dropped
from data.report import Dropped


def test_reasons_without_a_row_are_left_out():
    assert format_dropped(Dropped(mismatched=1200, over_long=1)) == "1,200 mismatched, 1 over_long"
    assert format_dropped(Dropped()) == "none"
