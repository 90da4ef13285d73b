"""What a run ran on."""

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "sentencepiece", "datasets", "sacrebleu")
# What computes on GPUs and TPUs, where it is installed as packages.
LIBRARIES = ("jax-cuda12-plugin", "jax-cuda13-plugin", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "libtpu")


def describe_environment() -> dict[str, Any]:
    """Versions, commit, devices and flags, for ``environment.json``.

    Where there is no git repository, as in most containers, the commit is what ``PUENTE_COMMIT`` says.
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in PACKAGES} | _libraries(),
        "commit": _git("rev-parse", "HEAD") or os.environ.get("PUENTE_COMMIT", ""),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "devices": [str(device.device_kind) for device in jax.devices()],
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
        "JAX_DEFAULT_MATMUL_PRECISION": os.environ.get("JAX_DEFAULT_MATMUL_PRECISION", ""),
    }


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _git(*arguments: str) -> str:
    command, folder = ["git", *arguments], Path(__file__).parent
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
