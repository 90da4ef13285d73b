"""Curves are the numbers of metrics.jsonl, at the updates and minutes that it says."""

import json

import pytest

from common.errors import UserError
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
    """10 minutes for the first 100 updates, 20 for the next: update 50 is minute 5, and update 150 is minute 20."""
    left, right = draw_curves([read_curves(run)], by_updates=False).axes
    assert drawn(left) == [[[10, 20.5], [30, 40.5]]]
    assert [place for place, _ in drawn(right)[1]] == [5, 10, 20]


def test_minutes_after_the_last_evaluation_are_not_known(run):
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 250, "kind": "train", "cross_entropy": 1.0}) + "\n")
    _, right = draw_curves([read_curves(run)], by_updates=False).axes
    assert str(drawn(right)[1][-1]) == "[nan, 1.0]"
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
    """From just below the lowest value to just above the first evaluation; the loss of update 50 lies outside."""
    _, right = draw_curves([read_curves(run)], by_updates=True).axes
    assert right.get_ylim() == pytest.approx((0.95 * 1.5, 1.05 * 3.0))


def test_a_run_without_an_evaluation(run):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(line for line in lines if "train" in line))
    with pytest.raises(UserError, match=r"metrics\.jsonl has no evaluation: training\.eval_every"):
        read_curves(run)
