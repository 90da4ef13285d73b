"""The conjugator against tables that were typed by hand, verb by verb, and never saw it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from data.phrasebook import spanish

ROWS = [
    line.split("\t") for line in Path(__file__).with_name("conjugations.tsv").read_text(encoding="utf-8").splitlines()
]
FINITE = [row for row in ROWS if row[1] in ("present", "preterite", "imperfect", "future")]
SINGLE: dict[str, Callable[[str], str]] = {
    "participle": spanish.participle,
    "gerund": spanish.gerund,
    "imperative_tú": spanish.command,
}


def test_the_tables_are_whole():
    verbs = {row[0] for row in FINITE}
    assert len(verbs) == 60
    assert len(FINITE) == 60 * 4


@pytest.mark.parametrize("row", FINITE, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_five_persons_of_a_tense(row):
    infinitive, tense, *forms = row
    assert [spanish.conjugate(infinitive, tense, slot) for slot in range(5)] == forms


@pytest.mark.parametrize("row", [row for row in ROWS if row[1] in SINGLE], ids=lambda row: f"{row[0]}-{row[1]}")
def test_participle_gerund_and_imperative(row):
    assert SINGLE[row[1]](row[0]) == row[2]
