"""python scripts/compile_for.py TARGET CONFIG, as far as that goes without the compilers; with them, test_aot.py."""

from pathlib import Path

import jax
import pytest

from attention.kernels.request import Device
from benchmarks.compiled.targets import ACCELERATORS, Target
from common.errors import UserError
from configs.load import load_config
from scripts.compile_for import main, plan

CONFIG = Path(__file__).parents[2] / "configs/quickstart.yaml"


def test_an_unknown_target_is_one_line_and_nothing_is_written(refuses, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses(main, "unknown target h300:8; the nearest is h200. Targets are t4, h100, ", "h300:8", CONFIG)
    assert list(tmp_path.iterdir()) == []


def test_help_shows_targets_and_examples(run_main):
    _, printed, _ = run_main(main, "--help")
    assert "v5p:2x2x4" in printed and "python scripts/compile_for.py h200:1 configs/transformer-big.yaml" in printed


def test_figures_are_of_the_kernel_that_auto_chooses_there():
    target = Target("h200:1", ACCELERATORS["h200"], Device("gpu", 9.0), tuple(jax.devices()[:1]), {})
    low = ["model.kernel=auto", "model.dtype=bfloat16", "model.matmul_dtype=bfloat16"]
    assert plan(load_config(CONFIG, low), target).cost.model.kernel == "cudnn"
    with pytest.raises(UserError) as refused:
        plan(load_config(CONFIG, [*low, "model.positions=alibi"]), target)
    assert str(refused.value) == "model.kernel=auto chooses cudnn and definition there: name one of them"
