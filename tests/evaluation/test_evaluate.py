"""What an evaluation holds, and the files it leaves."""

import json
from dataclasses import asdict, fields, replace

import pytest

from common.errors import UserError
from data.pairs import Pairs
from data.sources.report import SourceReport
from evaluation.evaluate import evaluate
from evaluation.metrics import Scores, score
from evaluation.report import Checkpoint, Notes, ReportKey, write_report
from evaluation.sentences import Sentence, as_lines, read_sentences

PAIRS = Pairs(
    ["Tom eats.", "Ana runs.", "Tom eats.", "Ana eats here."], ["Tom come.", "Ana corre.", "Come Tom.", "Ana come."]
)


@pytest.fixture(scope="module")
def evaluation(translator, params):
    return evaluate(translator, params, PAIRS)


def test_distinct_sources_are_translated_once_and_scored_against_all_their_references(translator, params, evaluation):
    sentences, references = evaluation.sentences, [["Tom come.", "Come Tom."], ["Ana corre."], ["Ana come."]]
    assert [each.source for each in sentences] == ["Tom eats.", "Ana runs.", "Ana eats here."]
    assert [each.references for each in sentences] == references
    found = translator.translate(params, [each.source for each in sentences])
    facts = [(each.translation, each.log_prob, each.score, each.ended, each.pieces) for each in sentences]
    assert facts == [(each.text, each.log_prob, each.score, each.ended, 1) for each in found]
    assert [each.tokens for each in sentences] == [translator.tokenizer.pieces(each.targets[0]) for each in found]
    assert evaluation.unended == sum(not each.ended for each in found)
    assert evaluation.scores == score([each.text for each in found], references)


def test_the_files_of_a_report(tmp_path, translator, evaluation):
    file = SourceReport("corpus/test.tsv", "ab" * 32, 5, malformed=1)
    key = ReportKey(file.sha256, decoding=translator.decoding)
    write_report(tmp_path / "eval/test.json", evaluation, Checkpoint(7, ""), file, key, Notes((1, 0)))
    names = ["test.json", "test.jsonl", "test.translations.txt"]
    assert sorted(path.name for path in (tmp_path / "eval").iterdir()) == names
    text = (tmp_path / "eval" / "test.translations.txt").read_text(encoding="utf-8")
    assert text == "".join(f"{each.translation}\n" for each in evaluation.sentences)
    assert read_sentences(tmp_path / "eval" / "test.jsonl") == evaluation.sentences
    report = json.loads((tmp_path / "eval" / "test.json").read_text(encoding="utf-8"))
    assert {field.name: report[field.name] for field in fields(Scores)} == asdict(evaluation.scores)
    assert (report["sources"], report["rows"], report["step"], report["unended"]) == (3, 4, 7, evaluation.unended)
    assert (report["test_set_sha256"], report["rows_read"], report["malformed"]) == ("ab" * 32, 5, 1)
    assert report["overlap_with_training"] == {"sources": 1, "targets": 0}
    assert report["decoding"]["beam_size"] == 2
    assert report["versions"]["sacrebleu"] in report["signature"]


GOOD = Sentence("a", ["b"], "c", ["␣c"], -0.5, -0.25, True, 1)
ODD = [as_lines([replace(GOOD, source="?")]).strip().replace('"?"', value) for value in ("5", "null", "[[]]")]


@pytest.mark.parametrize("line", ["{", "[]", '{"source": "a"}', "3", "[" * 100_000, *ODD])
def test_damaged_sentences_are_named_by_their_line(tmp_path, line):
    path = tmp_path / "test.jsonl"
    path.write_text(as_lines([GOOD]) + line + "\n")
    with pytest.raises(UserError, match=r"test\.jsonl:2: damaged"):
        read_sentences(path)
    path.write_text("")
    with pytest.raises(UserError, match=r"test\.jsonl is empty: evaluate the run again"):
        read_sentences(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_sentences(tmp_path / "other.jsonl")
