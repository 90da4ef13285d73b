"""What a run records of where it ran."""

import json
import re
from importlib.metadata import version

import jax
import pytest

from common.errors import UserError
from training.run import environment
from training.run.environment import check_types, describe_environment, find_setting_changes


def test_without_a_repository_the_commit_is_what_the_environment_says(monkeypatch):
    monkeypatch.setenv("PUENTE_COMMIT", "of the image")
    monkeypatch.setattr(environment, "_git", lambda *_: "of git")
    assert describe_environment()["commit"] == "of git"
    monkeypatch.setattr(environment, "_git", lambda *_: "")
    assert describe_environment()["commit"] == "of the image"


def test_libraries_are_listed_where_they_are_installed(monkeypatch):
    monkeypatch.setattr(environment, "LIBRARIES", ("pytest", "no-such-library"))
    packages = describe_environment()["packages"]
    assert packages["pytest"] == version("pytest") and "no-such-library" not in packages


def test_flags_that_change_numbers_are_recorded(monkeypatch):
    monkeypatch.setenv("JAX_DEFAULT_MATMUL_PRECISION", "float32")
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
    found = describe_environment()
    assert found["JAX_DEFAULT_MATMUL_PRECISION"] == "float32"
    assert found["XLA_FLAGS"] == "--xla_gpu_deterministic_ops=true"


def test_another_precision_is_refused_on_resume_and_other_flags_are_told(monkeypatch, tmp_path):
    """What an older version did not record is not compared."""
    monkeypatch.delenv("JAX_DEFAULT_MATMUL_PRECISION", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--a=1")
    recorded = describe_environment()
    del recorded["NVIDIA_TF32_OVERRIDE"]
    (tmp_path / "environment.json").write_text(json.dumps(recorded))
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert find_setting_changes(tmp_path, allow_changes=False) == []
    monkeypatch.setenv("XLA_FLAGS", "")
    told = ["XLA_FLAGS: --a=1 → unset (rounding)"]
    assert find_setting_changes(tmp_path, allow_changes=False) == told
    monkeypatch.setenv("JAX_DEFAULT_MATMUL_PRECISION", "bfloat16")
    problem = (
        "another precision of products: JAX_DEFAULT_MATMUL_PRECISION: unset → bfloat16; XLA_FLAGS: --a=1 → unset. "
    )
    with pytest.raises(UserError, match=re.escape(problem)):
        find_setting_changes(tmp_path, allow_changes=False)
    told.insert(0, "JAX_DEFAULT_MATMUL_PRECISION: unset → bfloat16 (rounding)")
    assert find_setting_changes(tmp_path, allow_changes=True) == told


def test_a_session_with_64_bits_trains_nothing():
    check_types()
    with jax.enable_x64(True), pytest.raises(UserError, match="jax_enable_x64"):
        check_types()
