"""The environment that a run ran in."""

import os
import platform
import subprocess
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError, write_note
from common.files import read_json_object
from common.processor import count_cores
from common.programs import ROOT
from training.run.layout import ENVIRONMENT

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "sentencepiece", "datasets", "sacrebleu")
# The libraries that compute on GPUs and TPUs, if installed as packages.
LIBRARIES = ("jax-cuda12-plugin", "jax-cuda13-plugin", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "libtpu")

PRECISION = ("JAX_DEFAULT_MATMUL_PRECISION", "NVIDIA_TF32_OVERRIDE")  # the precision of matrix products
ROUNDING = (
    "XLA_FLAGS EAGER_CONSTANT_FOLDING LIBTPU_INIT_ARGS JAX_DISABLE_MOST_OPTIMIZATIONS JAX_OPTIMIZATION_LEVEL "
    "JAX_EXEC_TIME_OPTIMIZATION_EFFORT JAX_USE_SHARDY_PARTITIONER JAX_COMPILER_ENABLE_REMAT_PASS"
).split()


def describe_environment() -> dict[str, Any]:
    """Versions, commit, devices and flags, for ``environment.json``."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: each.version for name in PACKAGES + LIBRARIES for each in distributions(name=name)},
        **_describe_commit(),
        "devices": [str(device.device_kind) for device in jax.devices()],
        "processors": count_cores(),
        **read_settings(),
    }


def read_settings() -> dict[str, str]:
    """Environment settings that change the digits of results; cli/process.py removes those that change more."""
    return {name: os.environ.get(name, "") for name in (*PRECISION, *ROUNDING)}


def find_setting_changes(run_dir: Path, allow_changes: bool) -> list[str]:
    """A line for each setting that differs from its record; UserError if the precision of products changes."""
    recorded, current = read_json_object(run_dir / ENVIRONMENT), read_settings()
    changed = [name for name, value in current.items() if recorded.get(name, value) != value]
    lines = [f"{name}: {recorded[name] or 'unset'} → {current[name] or 'unset'}" for name in changed]
    if set(changed) & set(PRECISION) and not allow_changes:
        advice = "Restore the environment variable, or continue with the new value: allow_changes=true"
        raise UserError(f"{run_dir} was trained with a different product precision: {'; '.join(lines)}. {advice}")
    return [f"{line} (rounding)" for line in lines]


def check_types() -> None:
    """UserError in a Python session with 64-bit numbers; Puente's own programs never use them."""
    if jax.config.values["jax_enable_x64"]:
        raise UserError("JAX computes with 64 bits in this session (jax_enable_x64): training needs it to be off")


def _describe_commit() -> dict[str, Any]:
    """The commit of this clone from git or, as in containers, ``PUENTE_COMMIT``; None, with a note, if unknown."""
    is_ours = (top := _git("rev-parse", "--show-toplevel")) is not None and Path(top).resolve() == ROOT
    commit = _git("rev-parse", "HEAD") if is_ours else os.environ.get("PUENTE_COMMIT") or None
    changes = _git("status", "--porcelain", "--untracked-files=no") if is_ours else None
    if commit is None:
        write_note("note: git cannot tell which commit this code is from; set the variable PUENTE_COMMIT to record it")
    return {"commit": commit, "uncommitted_changes": changes if changes is None else bool(changes)}


def _git(*arguments: str) -> str | None:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # there is none, it refuses, or this is no repository
        return None
