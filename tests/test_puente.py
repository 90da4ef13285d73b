"""``import puente``: the same results as the scripts, and errors that are one line."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import sacrebleu

import puente
from configs.load import load_config
from scripts import score, translate
from tests.prepared import save_untrained

LINES = ["Tom runs here.", "", "Ana eats there today now."]
PAIR = ("Tom runs here.", "Ana runs.")


@pytest.fixture(scope="module")
def folder(small_experiment, tmp_path_factory):
    """An untrained run."""
    return save_untrained(load_config(small_experiment, [f"run_dir={tmp_path_factory.mktemp('puente') / 'run'}"]))


@pytest.fixture(scope="module")
def run(folder):
    return puente.load(folder)


@pytest.fixture(scope="module")
def other(small_experiment, tmp_path_factory):
    """Another model with the vocabulary of ``folder``."""
    place = tmp_path_factory.mktemp("other") / "run"
    return save_untrained(load_config(small_experiment, [f"run_dir={place}", "model.num_heads=1"]))


def test_translations_are_those_of_translate_py(run, folder, run_main):
    text = "".join(f"{line}\n" for line in LINES).encode()
    code, out, _ = run_main(translate.main, folder, "--nbest=2", text=text)
    expected = [json.loads(line)["translations"] for line in out.splitlines()]
    names = ("text", "log_prob", "score", "ended")
    found = [[{name: vars(each)[name] for name in names} for each in of_line] for of_line in run.n_best(LINES, 2)]
    assert (code, found) == (0, expected)
    assert run.translate(LINES) == [of_line[0] for of_line in run.n_best(LINES, 2)]
    assert run.translate(LINES, beam_size=1, prefix="Tom")[0].text.startswith("Tom")
    assert len(run.n_best(LINES[:1], 5, search="sample")[0]) == 5  # which no beam of two has


def test_scores_are_those_of_score_py(run, folder, run_main):
    code, out, _ = run_main(score.main, folder, text="\t".join(PAIR).encode())
    assert (code, json.loads(out)) == (0, {"line": 1} | asdict(run.score([PAIR])[0]))
    assert run.score([]) == []


def test_an_ensemble_has_the_mean_of_its_members_probabilities(run, folder, other):
    members = [np.exp(each.score([PAIR])[0].token_log_probs) for each in (run, puente.load(other))]
    for ensemble in (puente.load([folder, other]), puente.load([folder, other], checkpoint=0)):
        found = np.exp(ensemble.score([PAIR])[0].token_log_probs)
        np.testing.assert_allclose(found, np.mean(members, axis=0), rtol=1e-5)
    assert not np.allclose(members[0], members[1], rtol=1e-2)
    with pytest.raises(puente.Error, match="attention works with one model only"):
        ensemble.attention(PAIR[0])


def test_attention_sums_to_one_over_keys_and_never_reads_ahead(run):
    found = run.attention(PAIR[0])
    sources, inputs, targets = map(len, found.labels)
    shapes = {"encoder": (sources, sources), "decoder": (targets, inputs), "encoder_decoder": (targets, sources)}
    for name, shape in shapes.items():
        weights = found.weights._asdict()[name]
        assert weights.shape == (1, 2, *shape)  # one layer, two heads
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    assert not np.triu(found.weights.decoder[0, 0], 1).any()
    shown = found._repr_html_()
    assert f"<td style='background: rgb(183 55 121 / {found.weights.encoder_decoder[0, :, 0, 0].mean():.2f})'>" in shown


def test_an_evaluation_is_kept_and_compared(run, folder, small_experiment):
    rows = [line.split("\t") for line in (small_experiment.parent / "test.tsv").read_text("utf-8").splitlines()]
    sources, references = map(list, zip(*rows, strict=True))
    found = []
    for settings in ({}, {"beam_size": 1}):
        scores = run.evaluate(**settings).scores
        texts = [each.text for each in run.translate(sources, **settings)]
        assert scores.bleu == sacrebleu.corpus_bleu(texts, [references]).score
        assert scores.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a")
        found.append(scores.bleu)
    [greedy] = (folder / "eval").glob("test-*.json")
    comparison = puente.compare(folder, greedy)
    assert comparison.against[0].bleu.difference == pytest.approx(found[1] - found[0])
    assert f"{found[0]:.2f}" in puente.describe(comparison)


def test_a_report_that_cannot_be_kept_costs_no_scores(run, small_experiment, tmp_path, capsys):
    """And a path is relative to the working folder, as for eval.py."""
    (tmp_path / "file").write_text("")
    evaluation = run.evaluate(small_experiment.parent / "valid.tsv", output=tmp_path / "file", beam_size=1)
    assert len(evaluation.sentences) == 8
    error = capsys.readouterr().err
    assert error.startswith("warning: the report was not saved") and error.count("\n") == 1


def test_mistakes_are_one_line_and_never_end_python(run, folder, tmp_path):
    mistakes = {
        "is not a run directory: it has no config.yaml": lambda: puente.load(tmp_path),
        "no checkpoint at step 99": lambda: puente.load(folder, checkpoint=99),
        "translates from en to es, not from es to en": lambda: puente.load(folder, source="es", target="en"),
        "nowhere is not a run directory": lambda: puente.load([folder, "nowhere"]),
        'give a list of texts, such as ["Good morning."], not': lambda: run.translate("Tom runs here."),
        "half a character": lambda: run.translate(["Tom\udce9"]),
        "unknown key decoding.beam_sise; the nearest valid name is": lambda: run.translate(LINES, beam_sise=2),
        "decoding.beam_size must be a whole number": lambda: run.translate(LINES, beam_size="wide"),
        "puente.load chooses the checkpoint": lambda: run.translate(LINES, checkpoint="latest"),
        "the count 3 must be from 1 to decoding.beam_size, 2": lambda: run.n_best(LINES, 3),
        "a pair is a source and its translation": lambda: run.score([("Tom",)]),
        "the sentence is empty": lambda: run.attention(" "),
        "no test file at": lambda: run.evaluate("nowhere.tsv"),
        "test.json is missing or damaged": lambda: puente.compare(tmp_path / "run", folder),
    }
    save_untrained(load_config(folder / "config.yaml", [f"run_dir={tmp_path / 'run'}"]))
    for message, call in mistakes.items():
        with pytest.raises(puente.Error) as caught:
            call()
        assert message in str(caught.value) and "\n" not in str(caught.value), caught.value
        assert not str(caught.value).startswith("command line"), message
