"""python scripts/report.py RUN…: the page has the numbers of the runs, and its script shows them."""

import json
import shutil

import jax
import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from common.files import append_line
from data.sources.report import SourceReport
from evaluation.attention_view.sentence import ONE_SEARCH, translate_and_attend
from experiment.evaluated_runs import read_reported
from experiment.load_run import load_run
from experiment.report import page
from experiment.report.runs import short_names
from scripts.report import main
from tests.evaluation.comparison.systems import drawn_set, sentence
from tests.payloads import PAYLOADS, Parsed, assert_accessible, assert_harmless, in_browser
from training.run.corpus import load_identity


@pytest.fixture
def report(run_main, tmp_path):
    """The program in this process; returns the page, and what is embedded in it."""

    def report(*arguments):
        path = tmp_path / "page.html"
        code, out, err = run_main(main, *arguments, "--output", path)
        assert (code, out, err) == (0, f"written  {path}\n", "")
        html = path.read_text(encoding="utf-8")
        return html, json.loads(Parsed(html).texts("script")[0])

    return report


def test_scores_by_length_and_of_sentences_are_those_of_sacrebleu(make_run, report):
    run = make_run("one", 0.2, 1)
    html, contents = report(run)
    sentences = read_reported(str(run), "test").sentences
    assert Parsed(html).texts("h1") == ["one"] and contents["comparison"] == {"problem": ""}
    for group, (first, last) in zip(contents["lengths"], [(1, 5), (6, 10), (11, 15)], strict=True):
        chosen = [each for each in sentences if first <= len(each.source.split()) <= last]
        hypotheses, references = [each.translation for each in chosen], [[each.references[0] for each in chosen]]
        ((score, low, high),) = group["scores"]
        assert group["sentences"] == len(chosen) and low < score < high
        assert score == pytest.approx(BLEU().corpus_score(hypotheses, references).score)
    for (source, references, (translation,), (chrf,)), each in zip(contents["sentences"], sentences, strict=True):
        assert (source, references, translation) == (each.source, each.references, each.translation)
        assert chrf == pytest.approx(CHRF().sentence_score(translation, references).score, abs=0.051)


def test_several_runs_are_compared_with_the_first_and_a_folder_stands_for_its_runs(make_run, report, tmp_path):
    base, other = make_run("sweep/a,seed=1", 0.1, 1), make_run("sweep/b,seed=1", 0.6, 2, "model.dropout=0.5")
    late = make_run("sweep/c,seed=1", 0.1, 3, "model.dropout=0.6", report="valid")
    (tmp_path / "sweep/a,seed=1.txt").write_text("step 10\n")
    _, contents = report(tmp_path / "sweep", *sorted((tmp_path / "sweep").iterdir()))
    assert [run["name"] for run in contents["runs"]] == ["a,seed=1", "b,seed=1", "c,seed=1"]
    assert contents["set"] == "test" and contents["scored"] == [0, 1]
    missing = f"{late / 'eval/test.json'} is missing or damaged: python eval.py {late}"
    assert [run["missing"] for run in contents["runs"]] == ["", "", missing]
    bleu, chrf = contents["comparison"]["verdicts"]["rows"]
    scores = [json.loads((run / "eval/test.json").read_text()) for run in (base, other)]
    assert bleu[:3] == ["b,seed=1", "BLEU", f"{scores[1]['bleu'] - scores[0]['bleu']:+.2f}"]
    assert chrf[2] == f"{scores[1]['chrf'] - scores[0]['chrf']:+.2f}" and bleu[-1] == "of these two runs: worse"


def test_without_any_test_report_the_last_validation_is_shown(make_run, report):
    _, contents = report(make_run("one", 0.2, 1, report="valid"))
    assert contents["set"] == "valid" and contents["scored"] == [0] and len(contents["sentences"]) == 40
    assert contents["runs"][0]["missing"].endswith("/one")
    _, contents = report(make_run("two", 0.2, 1, report="mine"))  # as a run before its first evaluation
    assert contents["scored"] == contents["sentences"] == [] and contents["cards"][0]["problem"]


def test_runs_on_other_sentences_are_not_compared(make_run, report):
    base, other = make_run("one", 0.2, 1), make_run("two", 0.2, 1, sentences=drawn_set(30, seed=5))
    _, contents = report(base, other)
    assert "cannot be compared" in contents["comparison"]["problem"] and contents["scored"] == [0]


def test_names_tell_runs_apart(tmp_path):
    folders = [tmp_path / name for name in ("x/seed1", "y/seed1", "y/_seed2")]
    assert short_names(folders) == ["x/seed1", "y/seed1", "y/_seed2"]
    assert short_names(folders[1:]) == ["seed1", "_seed2"] and short_names(folders[:1]) == ["seed1"]


@pytest.mark.slow
def test_attention_and_the_data_card_are_the_runs(run_dir, make_run, report, tmp_path):
    """Of a run whose corpus is at hand; its sentences are those of a report that it is given."""
    shutil.copytree(run_dir, tmp_path / "copy")
    identity = load_identity(run_dir / "data.json")
    assert identity is not None
    texts = ["Tom runs here there Ana.", "Ana eats here.", "Ana runs there and Tom eats here."]
    sentences = [
        sentence(text, [text], translation) for text, translation in zip(texts, ["Ana", *texts[1:]], strict=True)
    ]
    valid = SourceReport("valid.tsv", identity.files["valid"][0], 3)
    run = make_run("copy", 0, 1, report="valid", file=valid, sentences=sentences)
    _, contents = report(run, "--attention", 2)
    assert [each["source"] for each in contents["attention"]["sentences"]] == [texts[0], texts[2]]  # from the worst on
    loaded = load_run(run_dir, ONE_SEARCH)
    for each in contents["attention"]["sentences"]:
        weights = translate_and_attend(loaded.translator, loaded.params[0], each["source"]).weights
        np.testing.assert_allclose(each["uses"][0]["weights"], weights.encoder_decoder, atol=0.51e-4)
    assert "Sources" in [table["title"] for table in contents["cards"][0]["tables"]]
    assert contents["runs"][0]["parameters"] == sum(leaf.size for leaf in jax.tree.leaves(loaded.params[0]))


@pytest.mark.slow
def test_hostile_names_settings_and_sentences_stay_text(make_run, report, tmp_path):
    texts = [sentence(text, [text, "x y"], f"{text} z") for text in PAYLOADS]
    name = "<img src=x onerror=document.documentElement.dataset.ran=1>"
    changes = [f"data.test='{name}'"], ["training.seed=2"]
    runs = [make_run(f"{name}{n}", 0, 0, *changes[n], sentences=texts) for n in (0, 1)]
    for run in runs:
        (run / "environment.json").write_text(
            json.dumps({name: name, "x": float("nan"), "packages": {PAYLOADS[0]: PAYLOADS[1]}})
        )
        append_line(run / "metrics.jsonl", json.dumps({"step": 5, "kind": "valid", "minutes": 1.0, "bleu": 3.0}))
    html, _ = report(*runs)
    assert_harmless(in_browser(html, tmp_path), f"{name}0, {name}1", PAYLOADS[1], *PAYLOADS)
    assert_accessible(html, tmp_path)


READER = """
const say = (text) => byId("report").append(element("p", { class: "said" }, text));
const texts = (selector) => [...document.querySelectorAll(selector)].map((each) => each.textContent).join("|");
const change = (selector, value) => {
  const input = document.querySelector(selector);
  input.value = value;
  ["input", "change"].forEach((name) => input.dispatchEvent(new Event(name)));
};
const sources = "#sentences .source", order = "#sentences select", search = "#sentences input", axis = "#curves select";
"""


def said(html, folder):
    drawn = Parsed(in_browser(html, folder)).elements
    return ["".join(text) for _, attributes, text in drawn if attributes.get("class") == "said"]


@pytest.mark.slow
def test_sentences_are_searched_and_sorted_and_differences_are_marked(make_run, report, monkeypatch, tmp_path):
    texts = [sentence("a b", ["uno dos tres", "cuatro cinco"], "uno tres dos seis"), sentence("c d", ["once"], "once")]
    script = """
    say(texts(sources)); change(order, 1); say(texts(sources));
    change(search, "CINCO a"); say(texts(sources)); say(texts("u, mark"));
    change(axis, "minutes"); say(texts("#curves output"));
    """
    monkeypatch.setattr(page, "SCRIPTS", [*page.SCRIPTS, READER, script])
    run = make_run("one", 0, 1, sentences=texts)
    append_line(run / "metrics.jsonl", json.dumps({"step": 5, "kind": "valid", "minutes": 1.5, "bleu": 30.25}))
    assert said(report(run)[0], tmp_path) == ["a b|c d", "c d|a b", "a b", "tres|tres|seis", "1.5 minutes: 30.25"]


@pytest.mark.slow
def test_what_a_reader_does_with_a_trained_run(trained_run, report, monkeypatch, tmp_path):
    html, contents = report(trained_run, "--attention", 2)
    assert_accessible(html, tmp_path)
    chosen = contents["sentences"][7][0]
    script = f"change(search, {json.dumps(chosen)}); say(texts(sources)); change(axis, 'minutes'); say(texts('output'))"
    monkeypatch.setattr(page, "SCRIPTS", [*page.SCRIPTS, READER, script])
    found, shown = said(report(trained_run, "--attention", 2)[0], tmp_path)
    curve = contents["runs"][0]["curves"]["valid"]
    assert chosen in found.split("|") and f"{curve['minutes'][-1]:.4g} minutes: {curve['bleu'][-1]:.4g}" in shown


def test_mistakes_end_in_one_line_and_code_2(make_run, refuses, tmp_path):
    run = make_run("one", 0.2, 1)
    refuses(main, "nothing is not a run directory", run, tmp_path / "nothing")
    refuses(main, "is a folder; name a file", run, "--output", tmp_path)
    refuses(main, "invalid choice", run, "--attention", "-1")
    (tmp_path / "x.txt").write_text("step 10\n")
    refuses(main, "name a run, not the files that sweeps leave beside their runs", tmp_path / "x.txt")
    assert not list(tmp_path.glob("*.html"))
