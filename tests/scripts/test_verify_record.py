"""python scripts/verify_record.py NAME: seeds are trained once, and judged by a t test against a fixed target."""

import pytest
from scipy.stats import ttest_1samp

from common.files import read_json_object
from evaluation.comparison.significance import p_above
from training.run.layout import MACHINE


@pytest.mark.parametrize("scores", [[50.78, 51.06], [50.3, 50.1, 50.2, 50.4], [49.0, 51.0, 50.2]])
def test_p_is_that_of_the_t_test_of_scipy(scores):
    assert p_above(scores, 50.0) == pytest.approx(ttest_1samp(scores, 50.0, alternative="greater").pvalue, rel=1e-9)


def test_seeds_that_agree_to_the_last_digit_are_above_the_target_or_not():
    assert [p_above([score] * 3, 50.0) for score in (50.5, 50.0, 49.5)] == [0.0, 1.0, 1.0]


@pytest.mark.slow
def test_seeds_are_trained_once_measured_and_found_too_low(tmp_path, small_experiment, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    record = f"base: {small_experiment}\noverrides: {{training.eval_every: 5}}\nseeds: "
    for seeds, code in (("[1]", 2), ("[1, 2]\ngrid: {model.dropout: [0.1, 0.2]}", 2), ("[1, 2]", 1)):
        (tmp_path / "mine.yaml").write_text(record + seeds)
        done = call("scripts/verify_record.py", "mine.yaml", code=code)
        assert code == 1 or b"mine.yaml: a record is one recipe with at least two seeds" in done.stderr
    out = done.stdout.decode()
    assert "base,seed=1 complete\n" in out and "base,seed=2 complete\n" in out
    assert "the target is not reached: mean 0.00 of 2 seeds, one-sided p = 1 (a record needs p < 0.01)" in out
    assert read_json_object(tmp_path / "runs/sweeps/mine/base,seed=2" / MACHINE)["flops_per_second"]["jax"] > 1e8
    assert call("scripts/verify_record.py", "mine.yaml", code=1).stdout.decode() == out[out.index("RECORD") :]
