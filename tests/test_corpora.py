"""A corpus as others publish it trains and evaluates as a user does it."""

import json

import pytest

import eval as evaluation_program
import train as training_program
from common.files import sha256_of_file
from training.run.metrics import read_metrics

pytestmark = pytest.mark.slow


def test_three_columns_without_held_out_sets(small_experiment, tmp_path, run_main):
    """As manythings.org's spa.txt is: the third column names the authors of the sentences."""
    pairs, run = (small_experiment.parent / "train.tsv").read_text(encoding="utf-8").splitlines(), tmp_path / "run"
    rows = "".join(f"{pair}\tCC-BY 2.0 (France) #1 (Ana)\n" for pair in pairs)
    (tmp_path / "spa.txt").write_text(rows, encoding="utf-8")
    changes = [f"data.root={tmp_path}", "data.train=spa.txt", "data.valid=", "data.test=", "training.steps=2"]
    assert run_main(training_program.main, small_experiment, f"run_dir={run}", *changes)[0] == 0
    assert run_main(evaluation_program.main, run)[0] == 0

    (train,) = json.loads((run / "data.json").read_text())["files"]["train"]
    assert (train["sha256"], train["rows"]) == (sha256_of_file(tmp_path / "spa.txt"), 160)
    assert (train["held_out"], train["pairs"]) == (16, 144)
    held_out = [(run / "held_out" / f"{split}.tsv").read_text(encoding="utf-8") for split in ("valid", "test")]
    both = [line for text in held_out for line in text.splitlines()]
    assert len(both) == len(set(both)) == 16 and set(both) < set(pairs)
    validated = read_metrics(run)[-1]
    assert (validated["step"], "bleu" in validated) == (2, True)

    scores = json.loads((run / "eval/test.json").read_text())
    digest = sha256_of_file(run / "held_out/test.tsv")
    assert (scores["step"], scores["sources"], scores["test_set_sha256"]) == (2, 8, digest)
    assert scores["overlap_with_training"] == {"sources": 0, "targets": 0}
    assert (run / "eval/test.translations.txt").read_text(encoding="utf-8").count("\n") == 8
