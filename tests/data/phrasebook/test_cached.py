"""The phrasebook that is read back equals the one built from the same files."""

from data.pairs import Pairs
from data.phrasebook import cached
from data.phrasebook.cached import fingerprint, phrasebook

PARTS = {("phrases", "train"): Pairs(["¡Sí!", "a"], ["Yes!", "b"]), ("phrases", "test"): Pairs(["ñ"], ["n"])}


def test_it_is_built_once_and_again_when_its_sources_change(tmp_path, monkeypatch):
    built = []

    def build():
        built.append(1)
        return PARTS

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cached, "build", build)
    assert phrasebook() == phrasebook() == PARTS
    assert len(built) == 1
    monkeypatch.setattr(cached, "fingerprint", lambda: "0" * 64)
    assert phrasebook() == PARTS
    assert len(built) == 2


def test_sources_are_part_of_the_fingerprint(tmp_path, monkeypatch):
    (tmp_path / "phrasebook").mkdir()
    word = tmp_path / "phrasebook" / "words.tsv"
    word.write_text("cat\tgato\n")
    monkeypatch.setattr(cached, "FOLDER", tmp_path / "phrasebook")
    before = fingerprint()
    word.write_text("cat\tgata\n")
    assert fingerprint() != before
