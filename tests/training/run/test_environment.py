"""What a run records of where it ran."""

from importlib.metadata import version

from training.run import environment
from training.run.environment import describe_environment


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
