"""What a run ran on."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "sentencepiece", "datasets", "sacrebleu")


def describe_environment() -> dict[str, Any]:
    """Versions, commit, devices and flags, for ``environment.json``."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "devices": [str(device.device_kind) for device in jax.devices()],
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }


def _git(*arguments: str) -> str:
    command, folder = ["git", *arguments], Path(__file__).parent
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
