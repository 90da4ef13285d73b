"""What a run records of where it ran."""

import json
import re
import subprocess
from functools import partial
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

from common.errors import UserError
from training.run import environment
from training.run.environment import check_types, describe_environment, find_setting_changes


def commit_of(folder: Path, monkeypatch) -> tuple[str | None, bool | None]:
    monkeypatch.setattr(environment, "ROOT", folder)
    found = describe_environment()
    return found["commit"], found["uncommitted_changes"]


def test_the_commit_is_of_this_clone_or_what_the_environment_says_or_unknown(monkeypatch, tmp_path, capsys):
    """A copy without a repository, inside one of somebody else's; one that git refuses; none at all."""
    clone, author = tmp_path / "clone", ["-c", "user.name=a", "-c", "user.email=b"]
    git = partial(subprocess.run, check=True, capture_output=True, text=True, cwd=clone)
    (clone / "inside").mkdir(parents=True)
    (clone / "file").write_text("one")
    for command in (["init"], ["add", "."], [*author, "commit", "-m", "first"]):
        git(["git", *command])
    commit = git(["git", "rev-parse", "HEAD"]).stdout.strip()
    assert commit_of(clone, monkeypatch) == (commit, False)
    (clone / "file").write_text("two")
    assert commit_of(clone, monkeypatch) == (commit, True)
    assert capsys.readouterr().err == ""
    monkeypatch.delenv("PUENTE_COMMIT", raising=False)
    for folder in (clone / "inside", tmp_path):
        assert commit_of(folder, monkeypatch) == (None, None)
        assert capsys.readouterr().err.startswith("note: git cannot tell which commit this code is from")
    monkeypatch.setenv("PUENTE_COMMIT", "of the image")
    assert commit_of(tmp_path, monkeypatch) == ("of the image", None)
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("PATH", "")  # no git
    assert commit_of(clone, monkeypatch) == ("of the image", None)


def test_libraries_are_listed_where_they_are_installed(monkeypatch):
    monkeypatch.setattr(environment, "LIBRARIES", ("pytest", "no-such-library"))
    packages = describe_environment()["packages"]
    assert packages["pytest"] == version("pytest") and "no-such-library" not in packages


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
    why = "a different product precision: JAX_DEFAULT_MATMUL_PRECISION: unset → bfloat16; XLA_FLAGS: --a=1 → unset. "
    with pytest.raises(UserError, match=re.escape(why)):
        find_setting_changes(tmp_path, allow_changes=False)
    told.insert(0, "JAX_DEFAULT_MATMUL_PRECISION: unset → bfloat16 (rounding)")
    assert find_setting_changes(tmp_path, allow_changes=True) == told


def test_a_session_with_64_bits_trains_nothing():
    check_types()
    with jax.enable_x64(True), pytest.raises(UserError, match="jax_enable_x64"):
        check_types()
