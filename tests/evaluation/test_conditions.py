"""Which report a score goes to, so that none replaces another's, and how it is found again."""

import hashlib
import json
from dataclasses import asdict, replace

import pytest

from evaluation.conditions import Conditions, Precision, find_report, place_report, translations_beside
from model.config import DecodingConfig

OWN = Conditions("ab" * 32, decoding=DecodingConfig(beam_size=4))
OTHERS = [
    replace(OWN, test_set_sha256="cd" * 32),
    replace(OWN, decoding=DecodingConfig(beam_size=1)),
    replace(OWN, decoding=DecodingConfig(beam_size=4, checkpoint="latest")),
    replace(OWN, precision=Precision("bfloat16", "bfloat16")),
    replace(OWN, reading=OWN.reading | {"columns": ["es", "en"]}),
    replace(OWN, reading=OWN.reading | {"malformed": "skip"}),
    replace(OWN, run="/runs/another"),
]


def write(folder, conditions, *, own):
    """What eval.py does: a report at its place, here with its conditions alone."""
    path = place_report(folder, "test", conditions, own=own)
    path.write_text(json.dumps(asdict(conditions)))
    return path


def test_each_set_and_search_has_a_report_of_its_own_in_any_order(tmp_path):
    for number, everything in enumerate([[OWN, *OTHERS], [*OTHERS, OWN]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        places = {write(folder, conditions, own=conditions == OWN) for conditions in everything}
        assert len(places) == 8 and folder / "test.json" in places
        for conditions in everything:
            path = find_report(folder, "test", conditions, own=conditions == OWN)
            assert path is not None and json.loads(path.read_text()) == asdict(conditions)
        assert find_report(folder, "test", OWN, own=True) == folder / "test.json"
        again = {write(folder, conditions, own=conditions == OWN) for conditions in everything}
        assert again == places  # the same again replaces its own


@pytest.mark.parametrize(
    "old",
    [
        {"test_set_sha256": "cd" * 32, "decoding": asdict(OWN.decoding)},
        {"test_set_sha256": "ab" * 32, "decoding": asdict(OWN.decoding) | {"beam_size": 1}},
        {"bleu": 1.0},
        [],
    ],
)
def test_a_report_of_an_older_version_on_another_set_or_search_is_not_replaced(tmp_path, old):
    (tmp_path / "test.json").write_text(json.dumps(old))
    written = write(tmp_path, OWN, own=True)
    assert json.loads((tmp_path / "test.json").read_text()) == old
    assert find_report(tmp_path, "test", OWN, own=True) == written != tmp_path / "test.json"


def test_a_report_of_an_older_version_is_found(tmp_path):
    decoding = asdict(OWN.decoding)
    del decoding["mbr"]  # a key that came later, at its default
    old = {"test_set_sha256": OWN.test_set_sha256, "decoding": decoding}
    (tmp_path / "test.json").write_text(json.dumps(old))
    assert find_report(tmp_path, "test", OWN, own=True) == tmp_path / "test.json"
    assert place_report(tmp_path, "test", OWN, own=True) == tmp_path / "test.json"
    (tmp_path / "phrases.json").write_text(json.dumps(old))
    assert find_report(tmp_path, "phrases", OWN, own=False) == tmp_path / "phrases.json"
    assert find_report(tmp_path, "phrases", OTHERS[1], own=False) is None


def test_a_name_does_not_change_with_keys_at_their_defaults():
    facts = {"test_set_sha256": "", "reading": {}, "precision": {}, "decoding": {}, "run": ""}
    assert Conditions().digest() == hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def test_the_translations_lie_beside_their_report(tmp_path):
    assert translations_beside(tmp_path / "v1.2-0a1b2c3d.json") == tmp_path / "v1.2-0a1b2c3d.translations.txt"
