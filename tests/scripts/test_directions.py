"""A run of data.direction=both, as train.py, eval.py, translate.py and score.py use it."""

import json
import re

import pytest

from configs.load import load_config
from data.pairs import Pairs
from eval import main as evaluate
from experiment.evaluate_run import count_overlap
from experiment.load_run import load_run
from scripts.inspect_data import main as inspect
from scripts.score import main as score
from scripts.translate import main as translate
from tests.prepared import save_untrained
from train import train
from training.run.metrics import read_metrics

BACK = ["data.source=es", "data.target=en"]


@pytest.fixture(scope="module")
def both(small_experiment, tmp_path_factory):
    """Its parameters are those that the run of one direction has."""
    run = tmp_path_factory.mktemp("both") / "run"
    return save_untrained(load_config(small_experiment, [f"run_dir={run}", "data.direction=both"]))


def test_each_direction_has_its_report(both, small_experiment, run_main):
    test_set, printed = (small_experiment.parent / "test.tsv").read_text(encoding="utf-8"), dict[str, str]()
    first = test_set.partition("\n")[0].split("\t")
    for name, overrides, source in (("test", [], 0), ("test.es-en", BACK, 1)):
        code, out, err = run_main(evaluate, both, *overrides)
        assert (code, err) == (0, ""), err
        assert out.endswith(f"written   {both}/eval/{name}.json, .jsonl and .translations.txt\n")
        report = json.loads((both / "eval" / f"{name}.json").read_text(encoding="utf-8"))
        assert report["sources"] == 12 and report["direction"] == ("en-es", "es-en")[source]
        assert report["overlap_with_training"] == {"sources": 0, "targets": 0}
        assert f"source       {first[source]}\n" in out and f"reference    {first[1 - source]}\n" in out
        printed[name] = (both / "eval" / f"{name}.translations.txt").read_text(encoding="utf-8")
    assert printed["test"] != printed["test.es-en"]
    assert len(list((both / "eval").iterdir())) == 6


def test_sentences_are_looked_for_among_training_sentences_of_their_language(both, small_experiment):
    text = (small_experiment.parent / "train.tsv").read_text(encoding="utf-8")
    english, spanish = map(list, zip(*(line.split("\t") for line in text.splitlines()), strict=True))
    assert count_overlap(load_run(both), Pairs(english, spanish)) == (160, 160)
    assert count_overlap(load_run(both, BACK), Pairs(spanish, english)) == (160, 160)


def test_translations_and_their_scores_in_each_direction(both, run_main):
    """Both programs go by data.source and data.target."""
    found, scores = [], []
    for overrides in ([], BACK):
        code, out, err = run_main(translate, both, "--scores", *overrides, text=b"Tom eats here.\n")
        assert code == 0, err
        found.append(json.loads(out)["translations"])
        code, out, err = run_main(score, both, *overrides, text=b"Tom eats here.\tAna runs.\n")
        assert code == 0, err
        scores.append(json.loads(out)["log_prob"])
    assert found[0] != found[1]
    assert scores[0] != pytest.approx(scores[1], rel=1e-4)


def test_directions_that_were_not_trained(both, run_dir, refuses):
    one, trained = "from en to es, not from", "from en to es and from es to en, not from"
    for main in (evaluate, translate, score):
        refuses(main, f"{run_dir} translates {one} es to en", run_dir, *BACK)
    refuses(evaluate, "data.source and data.target", both, "data.source=es")
    refuses(evaluate, f"{both} translates {trained} en to fr", both, "data.columns=[en,fr]", "data.target=fr")


@pytest.mark.slow
def test_the_data_card_counts_each_text_once(both, small_experiment, run_main):
    """Counts of words and letters are those of one direction; the tag is only in the row's tokens."""
    cards = [run_main(inspect, small_experiment, f"data.direction={direction}")[1] for direction in ("one", "both")]
    one, two = ({line for line in card.splitlines() if line.startswith("characters")} for card in cards)
    assert one == two and one
    assert [re.findall(r"epoch +(\d+) pairs", card) for card in cards] == [["160"], ["320"]]


@pytest.mark.slow
def test_validation_scores_each_direction_as_evaluation_does(small_experiment, tmp_path, run_main):
    """The mean of both decides which checkpoint is best."""
    run = tmp_path / "run"
    changes = ["training.steps=40", "training.warmup_steps=10", "training.learning_rate=1e-2"]
    train(load_config(small_experiment, [f"run_dir={run}", "data.direction=both", *changes]))
    [validated] = [line for line in read_metrics(run) if line["kind"] == "valid"]
    scores, valid = [], f"data.test={small_experiment.parent / 'valid.tsv'}"
    for overrides, name in (([], "valid"), (BACK, "valid.es-en")):
        kept = json.loads((run / "eval" / f"{name}.json").read_bytes())
        code, _, err = run_main(evaluate, run, *overrides, valid, "--output", tmp_path / name)
        assert code == 0, err
        [path] = (tmp_path / name).glob("*.json")
        report, ending = json.loads(path.read_bytes()), kept["direction"].replace("-", "_")
        scores.append((report["bleu"], report["chrf"]))
        assert scores[-1] == (kept["bleu"], kept["chrf"])
        assert scores[-1] == (validated[f"bleu_{ending}"], validated[f"chrf_{ending}"])
    assert scores[0] != scores[1]
    means = [sum(pair) / 2 for pair in zip(*scores, strict=True)]
    assert [validated["bleu"], validated["chrf"]] == pytest.approx(means)
