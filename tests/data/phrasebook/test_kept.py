"""What is kept is what was made, and nothing else is ever taken for it."""

import pytest

from data.pairs import Pairs
from data.phrasebook import kept
from data.phrasebook.kept import fingerprint, keep, phrasebook, read_back

PARTS = {("phrases", "train"): Pairs(["¡Sí!", "a"], ["Yes!", "b"]), ("phrases", "test"): Pairs(["ñ"], ["n"])}


def test_what_is_kept_comes_back(tmp_path):
    assert keep(tmp_path / "folder" / "parts.json", PARTS) == PARTS
    assert read_back(tmp_path / "folder" / "parts.json") == PARTS


@pytest.mark.parametrize("harm", [lambda text: text[:-1], lambda text: text.replace('"a"', '"e"'), lambda text: ""])
def test_what_was_changed_is_not_taken(tmp_path, harm):
    keep(tmp_path / "parts.json", PARTS)
    path = tmp_path / "parts.json"
    path.write_text(harm(path.read_text()))
    assert read_back(path) is None


def test_it_is_made_once_and_again_when_its_sources_change(tmp_path, monkeypatch):
    made = []

    def make():
        made.append(1)
        return PARTS

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept, "made", make)
    assert phrasebook() == phrasebook() == PARTS
    assert len(made) == 1
    monkeypatch.setattr(kept, "fingerprint", lambda: "0" * 64)
    assert phrasebook() == PARTS
    assert len(made) == 2
    assert len(list((tmp_path / "puente").iterdir())) == 2


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    assert keep(tmp_path / "file" / "parts.json", PARTS) == PARTS


def test_sources_are_part_of_the_fingerprint(tmp_path, monkeypatch):
    (tmp_path / "phrasebook").mkdir()
    word = tmp_path / "phrasebook" / "words.tsv"
    word.write_text("cat\tgato\n")
    monkeypatch.setattr(kept, "HERE", tmp_path / "phrasebook")
    before = fingerprint()
    word.write_text("cat\tgata\n")
    assert fingerprint() != before
