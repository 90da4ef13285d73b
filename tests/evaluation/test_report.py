"""Which report a score goes to, so that none replaces another's, and how it is found again."""

import hashlib
import json
from dataclasses import asdict, replace

import pytest

from evaluation.report import Precision, ReportKey, ReportPlace, name_of_source
from model.config import DecodingConfig

OWN = ReportKey("ab" * 32, decoding=DecodingConfig(beam_size=4))
OTHERS = [
    replace(OWN, test_set_sha256="cd" * 32),
    replace(OWN, decoding=DecodingConfig(beam_size=1)),
    replace(OWN, decoding=DecodingConfig(beam_size=4, checkpoint="latest")),
    replace(OWN, precision=Precision("bfloat16", "bfloat16")),
    replace(OWN, reading=OWN.reading | {"columns": ["es", "en"]}),
    replace(OWN, reading=OWN.reading | {"malformed": "skip"}),
    replace(OWN, run="/runs/another"),
]


def place(folder, key, name="test"):
    return ReportPlace(folder, name, key, is_own=key == OWN)


def write(folder, key):
    """What eval.py does: a report at its place, here with its key alone."""
    path = place(folder, key).choose()
    path.write_text(json.dumps(asdict(key)))
    return path


@pytest.mark.parametrize("everything", [[OWN, *OTHERS], [*OTHERS, OWN]], ids=["own first", "own last"])
def test_each_set_and_search_has_a_report_of_its_own_in_any_order(tmp_path, everything):
    paths = {write(tmp_path, key) for key in everything}
    assert len(paths) == 8 and tmp_path / "test.json" in paths
    for key in everything:
        path = place(tmp_path, key).find()
        assert path is not None and json.loads(path.read_text()) == asdict(key)
    assert place(tmp_path, OWN).find() == tmp_path / "test.json"
    assert {write(tmp_path, key) for key in everything} == paths  # the same again replaces its own


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
    written = write(tmp_path, OWN)
    assert json.loads((tmp_path / "test.json").read_text()) == old
    assert place(tmp_path, OWN).find() == written != tmp_path / "test.json"


def test_a_report_of_an_older_version_is_found(tmp_path):
    decoding = asdict(OWN.decoding)
    del decoding["mbr"]  # a key that came later, at its default
    for name in ("test", "phrases"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"test_set_sha256": "ab" * 32, "decoding": decoding}))
    assert place(tmp_path, OWN).find() == place(tmp_path, OWN).choose() == tmp_path / "test.json"
    assert ReportPlace(tmp_path, "phrases", OWN).find() == tmp_path / "phrases.json"
    assert place(tmp_path, OTHERS[1], "phrases").find() is None


def test_a_name_does_not_change_with_keys_at_their_defaults():
    facts = {"test_set_sha256": "", "reading": {}, "precision": {}, "decoding": {}, "run": ""}
    assert ReportKey().digest() == hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("folder/mine.tsv", "mine"),
        ("/data/news.LANG.gz", "news"),
        ("v1.2.jsonl.gz", "v1.2"),
        ("Helsinki-NLP/opus-100:en-es:test", "opus-100.en-es.test"),
        ("phrasebook:phrases", "phrasebook.phrases"),
    ],
)
def test_a_set_has_its_own_name_in_the_run(source, name):
    assert name_of_source(source) == name
