"""Curves are the numbers of metrics.jsonl, at the updates and minutes that it says."""

import json
from math import nan
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from common.files import append_line
from configs.load import load_config, save_config
from experiment.curves import draw_curves, read_curves

TRAINED = [(50, 4.0), (100, 2.0), (150, "nan")]
EVALUATED = [(100, 10.0, 20.5, 3.0), (200, 30.0, 40.5, 1.5)]


@pytest.fixture
def run(tmp_path):
    lines = [{"step": step, "kind": "train", "cross_entropy": value} for step, value in TRAINED]
    names = ("step", "minutes", "bleu", "cross_entropy")
    lines += [{"kind": "valid"} | dict(zip(names, values, strict=True)) for values in EVALUATED]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def drawn(axes):
    return [line.get_xydata().tolist() for line in axes.get_lines()]


def test_curves_against_updates(run):
    left, right = draw_curves([read_curves(run)], by_updates=True).axes
    assert drawn(left) == [[[100, 20.5], [200, 40.5]]]
    validation, training = drawn(right)
    assert validation == [[100, 3.0], [200, 1.5]]
    assert training[:2] == [[50, 4.0], [100, 2.0]] and str(training[2]) == "[150.0, nan]"


def test_curves_against_minutes(run):
    """10 minutes for the first 100 updates, 20 for the next: update 50 is minute 5, and update 150 is minute 20.

    Those after the last evaluation are not known.
    """
    append_line(run / "metrics.jsonl", json.dumps({"step": 250, "kind": "train", "cross_entropy": 1.0}))
    left, right = draw_curves([read_curves(run)], by_updates=False).axes
    assert drawn(left) == [[[10, 20.5], [30, 40.5]]]
    np.testing.assert_equal([place for place, _ in drawn(right)[1]], [5, 10, 20, nan])
    _, right = draw_curves([read_curves(run)], by_updates=True).axes
    assert drawn(right)[1][-1] == [250, 1.0]


def test_runs_have_their_names_and_colours(run):
    curves = read_curves(run)
    left, right = draw_curves([curves, curves._replace(name="other")], by_updates=True).axes
    assert left.get_legend_handles_labels()[1] == [run.name, "other"]
    colours = [line.get_color() for line in left.get_lines()]
    assert len(set(colours)) == 2
    assert [line.get_color() for line in right.get_lines()] == [colours[0], colours[0], colours[1], colours[1]]


def test_the_first_updates_do_not_set_the_limits(run):
    """From just below the lowest value to just above update 50's; what is before update 20 of 200 lies outside."""
    append_line(run / "metrics.jsonl", json.dumps({"step": 10, "kind": "train", "cross_entropy": 9.0}))
    _, right = draw_curves([read_curves(run)], by_updates=True).axes
    assert right.get_ylim() == pytest.approx((0.95 * 1.5, 1.05 * 4.0))


def test_a_run_without_an_evaluation(run):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if "train" in line))
    with pytest.raises(UserError, match=r"metrics\.jsonl has no evaluation: training\.eval_every"):
        read_curves(run)


def legend(runs):
    found = draw_curves(runs, by_updates=True).axes[0].get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def test_runs_of_one_name_and_names_that_begin_with_an_underscore_are_told_apart(run, tmp_path, monkeypatch):
    a, b, c = (read_curves(run)._replace(name=f"/runs/{name}") for name in ("x/seed1", "y/seed1", "z/_try"))
    assert legend([a, b]) == ["x/seed1", "y/seed1"] and legend([a, c]) == ["x/seed1", "z/_try"]
    assert legend([a, a._replace(name="/runs/$x$")]) == ["seed1", "$x$"]
    monkeypatch.chdir(run)
    assert legend([read_curves(Path())]) == [run.name]


def with_record(run, name, valid, config):
    """The config.yaml and data.json of that name, with this validation set."""
    save_config(config, run / f"config{name}.yaml")
    files = {"train": [{"sha256": "t"}], "valid": [{"sha256": valid}], "test": [{"sha256": "t"}]}
    facts = {"tokenizer": {"sha256": "t"}, "fingerprint": "f", "files": files, "training_pairs": 9}
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
    left, right = draw_curves([read_curves(run)], by_updates=True).axes
    gap = [[nan, nan]] if is_broken else []
    np.testing.assert_equal(drawn(left), [[[100, 20.5], *gap, [200, 40.5]]])
    np.testing.assert_equal(drawn(right)[0], [[100, 3.0], *gap, [200, 1.5]])
