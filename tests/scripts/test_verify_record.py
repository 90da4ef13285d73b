"""python scripts/verify_record.py NAME: seeds are trained once, and judged by a t test against a fixed target."""

import shutil

import pytest
from scipy.stats import ttest_1samp

from common.errors import UserError
from common.files import read_json_object
from evaluation.comparison.significance import p_above
from scripts.verify_record import load_record
from training.run.layout import MACHINE

RECORD = "base: small.yaml\noverrides: {training.eval_every: 5}\nseeds: [1, 2]\n"


@pytest.mark.parametrize("scores", [[50.78, 51.06], [50.3, 50.1, 50.2, 50.4], [49.0, 51.0, 50.2], [48.0, 48.1, 48.2]])
def test_p_is_that_of_the_t_test_of_scipy(scores):
    assert p_above(scores, 50.0) == pytest.approx(ttest_1samp(scores, 50.0, alternative="greater").pvalue, rel=1e-9)


def test_seeds_that_agree_to_the_last_digit_are_above_the_target_or_not():
    assert [p_above([score] * 3, 50.0) for score in (50.5, 50.0, 49.5)] == [0.0, 1.0, 1.0]


@pytest.fixture
def folder(tmp_path, small_experiment, monkeypatch):
    shutil.copy(small_experiment, tmp_path / "small.yaml")
    (tmp_path / "mine.yaml").write_text(RECORD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("change", ["seeds: [1]", "seeds: [1, 2]\ngrid: {model.dropout: [0.1, 0.2]}"])
def test_one_seed_or_two_recipes_are_no_record(folder, change):
    (folder / "mine.yaml").write_text(RECORD.replace("seeds: [1, 2]", change))
    with pytest.raises(UserError, match="one recipe with at least two seeds"):
        load_record(folder / "mine.yaml")
    assert not (folder / "runs").exists()


@pytest.mark.slow
def test_seeds_are_trained_once_measured_and_found_too_low(folder, call):
    done = call("scripts/verify_record.py", "mine.yaml", code=1)
    out = done.stdout.decode()
    assert "seed=1: complete at step 10" in out and "seed=2: complete at step 10" in out
    assert "the target is not reached: mean BLEU 0.00 of 2 seeds; against at most 50.0, p = 1, and below 0.01" in out
    for seed in (1, 2):
        facts = read_json_object(folder / f"runs/sweeps/mine/base,seed={seed}" / MACHINE)
        assert facts["cores"] == 2 and facts["flops_per_second"]["jax"] > 1e8
    again = call("scripts/verify_record.py", "mine.yaml", code=1).stdout.decode()
    assert again == out[out.index("RECORD") :]
