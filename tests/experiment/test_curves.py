"""Curves are the numbers of metrics.jsonl, at the updates, minutes and tokens that it says."""

import json

import numpy as np
import pytest

from configs.load import load_config, save_config
from experiment.curves import read_curves

# A batch has 2 × (60 × 0.5 + 40 × 0.75) = 120 tokens: 50 updates at 20 tokens/s take 5 minutes, at 10 tokens/s 10.
DATA = {"row_lengths": {"source": 60, "target": 40}, "fill": {"source": 0.5, "target": 0.75}}
TRAINED = [(50, 4.0, 20.0), (100, 2.0, 20.0), (150, "nan", 10.0), (200, 1.5, 10.0), (250, 1.0, 10.0)]
EVALUATED = [(100, 11.0, 20.5, 3.0), (200, 33.0, 40.5, "inf")]


@pytest.fixture
def run(tmp_path, small_experiment):
    keys = ("step", "cross_entropy", "tokens_per_second"), ("step", "minutes", "bleu", "cross_entropy")
    lines = [{"kind": "train"} | dict(zip(keys[0], values, strict=True)) for values in TRAINED]
    lines += [{"kind": "valid"} | dict(zip(keys[1], values, strict=True)) for values in EVALUATED]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "data.json").write_text(json.dumps(DATA))
    save_config(load_config(small_experiment, [f"run_dir={tmp_path}", "data.batch_rows=2"]), tmp_path / "config.yaml")
    return tmp_path


def test_curves_have_the_lines_of_metrics(run):
    curves = read_curves(run)
    assert curves["valid"] == {
        "step": [100, 200],
        "minutes": [11, 33],
        "tokens": [12_000, 24_000],
        "bleu": [20.5, 40.5],
        "cross_entropy": [3, None],
    }
    assert curves["train"]["cross_entropy"] == [4, 2, None, 1.5, 1] and curves["train"]["tokens"][0] == 6000
    assert curves["train"]["gradient_norm"] == [None] * 5 and curves["breaks"] == ()
    json.dumps(curves, allow_nan=False)


def test_minutes_of_training_agree_with_those_of_evaluations(run):
    """To update 100 it is 10 minutes by its speed, and 11 with all else; to 200, 30 and 33; then 10 more for 250."""
    np.testing.assert_allclose(read_curves(run)["train"]["minutes"], [5.5, 11, 22, 33, 43])


def test_a_run_before_its_first_evaluation_or_its_first_line(run):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if "train" in line))
    np.testing.assert_allclose(read_curves(run)["train"]["minutes"], [5, 10, 20, 30, 40])
    (run / "data.json").unlink()
    assert read_curves(run)["train"]["tokens"] == [None] * 5
    (run / "metrics.jsonl").unlink()
    assert read_curves(run)["valid"]["bleu"] == []


def test_tokens_before_a_change_are_counted_in_batches_of_that_time(run, small_experiment):
    """100 updates of 120 tokens, then batches four times as large."""
    with_record(run, ".until-100", "same", load_config(run / "config.yaml"))
    with_record(run, "", "same", load_config(small_experiment, [f"run_dir={run}", "data.batch_rows=8"]))
    assert read_curves(run)["train"]["tokens"] == [6000, 12_000, 36_000, 60_000, 84_000]


def with_record(run, name, valid, config):
    """The config.yaml and data.json of that name, with this validation set."""
    save_config(config, run / f"config{name}.yaml")
    files = {"train": [{"sha256": "t"}], "valid": [{"sha256": valid}], "test": [{"sha256": "t"}]}
    facts = DATA | {"tokenizer": {"sha256": "t"}, "fingerprint": "f", "files": files, "training_pairs": 9}
    (run / f"data{name}.json").write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("valid", "override", "is_broken"),
    [
        ("other", "training.beta1=0.8", True),
        ("same", "decoding.beam_size=1", True),
        ("same", "training.beta1=0.8", False),
    ],
)
def test_curves_break_where_scores_do_not_compare(run, small_experiment, valid, override, is_broken):
    """The run went on after update 100 with other settings; its evaluations are those of updates 100 and 200."""
    with_record(run, ".until-100", "same", load_config(small_experiment, [f"run_dir={run}"]))
    with_record(run, "", valid, load_config(small_experiment, [f"run_dir={run}", override]))
    assert read_curves(run)["breaks"] == (1,) * is_broken
