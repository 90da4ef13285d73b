"""The phrasebook that is read back is the one that was made, of the same sources."""

from data.pairs import Pairs
from data.phrasebook import kept
from data.phrasebook.kept import fingerprint, phrasebook

PARTS = {("phrases", "train"): Pairs(["¡Sí!", "a"], ["Yes!", "b"]), ("phrases", "test"): Pairs(["ñ"], ["n"])}


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


def test_sources_are_part_of_the_fingerprint(tmp_path, monkeypatch):
    (tmp_path / "phrasebook").mkdir()
    word = tmp_path / "phrasebook" / "words.tsv"
    word.write_text("cat\tgato\n")
    monkeypatch.setattr(kept, "HERE", tmp_path / "phrasebook")
    before = fingerprint()
    word.write_text("cat\tgata\n")
    assert fingerprint() != before
