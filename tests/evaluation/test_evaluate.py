"""What an evaluation holds, and the files it leaves."""

import json
from dataclasses import fields

import pytest

from data.pairs import Pairs
from data.report import SourceReport
from evaluation.conditions import Conditions
from evaluation.evaluate import evaluate
from evaluation.metrics import Scores, score
from evaluation.report import write_report

PAIRS = Pairs(
    ["Tom eats.", "Ana runs.", "Tom eats.", "Ana eats here."], ["Tom come.", "Ana corre.", "Come Tom.", "Ana come."]
)


@pytest.fixture(scope="module")
def evaluation(translator, params):
    return evaluate(translator, params, PAIRS)


def test_distinct_sources_are_translated_once_and_scored_against_all_their_references(translator, params, evaluation):
    assert evaluation.sources == ["Tom eats.", "Ana runs.", "Ana eats here."]
    assert evaluation.references == [["Tom come.", "Come Tom."], ["Ana corre."], ["Ana come."]]
    found = translator.translate(params, evaluation.sources)
    assert evaluation.translations == [each.text for each in found]
    assert evaluation.target_tokens == sum(each.length for each in found)
    assert evaluation.unended == sum(not each.ended for each in found)
    assert evaluation.scores == score(evaluation.translations, evaluation.references)
    assert evaluation.sentences_per_second == 3 / evaluation.seconds
    assert evaluation.target_tokens_per_second == evaluation.target_tokens / evaluation.seconds


def test_the_files_of_a_report(tmp_path, translator, evaluation):
    file = SourceReport("corpus/test.tsv", "ab" * 32, 5, malformed=1)
    conditions = Conditions(file.sha256, decoding=translator.decoding)
    write_report(tmp_path / "eval/test.json", evaluation, step=7, file=file, conditions=conditions, overlap=(1, 0))
    assert sorted(path.name for path in (tmp_path / "eval").iterdir()) == ["test.json", "test.translations.txt"]
    text = (tmp_path / "eval" / "test.translations.txt").read_text(encoding="utf-8")
    assert text == "".join(f"{line}\n" for line in evaluation.translations)
    report = json.loads((tmp_path / "eval" / "test.json").read_text(encoding="utf-8"))
    assert report["bleu"] == evaluation.scores.bleu
    assert report["chrf"] == evaluation.scores.chrf
    assert report["signature"] == evaluation.scores.signature
    assert (report["sources"], report["rows"], report["step"]) == (3, 4, 7)
    assert report["test_set_sha256"] == "ab" * 32
    assert (report["rows_read"], report["malformed"]) == (5, 1)
    assert report["overlap_with_training"] == {"sources": 1, "targets": 0}
    assert report["decoding"]["beam_size"] == 2
    assert report["versions"]["sacrebleu"] in report["signature"]
    assert list(report)[:7] == [field.name for field in fields(Scores)] and None not in (
        report["malformed"],
        report["unended"],
    )


def test_a_validation_report_has_no_overlap_counted(tmp_path, translator, evaluation):
    file = SourceReport("corpus/valid.tsv", "cd" * 32, 4)
    conditions = Conditions(file.sha256, decoding=translator.decoding)
    write_report(tmp_path / "valid.json", evaluation, step=7, file=file, conditions=conditions)
    assert json.loads((tmp_path / "valid.json").read_text())["overlap_with_training"] is None
