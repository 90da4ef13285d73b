"""What each of several jobs gets of the machine: one GPU, or its share of the cores."""

import os
import subprocess
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """The cores that a job may use (empty: all), and environment variables that name its GPU."""

    cores: frozenset[int] = frozenset()
    environment: dict[str, str] = field(default_factory=dict)


def shares(jobs: int | None) -> list[Share]:
    """A share for each job; None means as many as there are GPUs, or one on a CPU.

    More jobs than GPUs take turns on them, which JAX's memory rarely allows. Cores are divided as evenly as possible.
    """
    gpus = [] if os.environ.get("JAX_PLATFORMS") == "cpu" else list_gpus()
    count = jobs or len(gpus) or 1
    if gpus:
        return [Share(environment={"CUDA_VISIBLE_DEVICES": gpus[index % len(gpus)]}) for index in range(count)]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if count == 1 or count > len(cores):
        return [Share()] * count
    return [Share(frozenset(cores[index::count])) for index in range(count)]


def list_gpus() -> list[str]:
    """The GPUs of NVIDIA that JAX would see, without starting JAX: a process that has one keeps its memory."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [gpu for gpu in visible.split(",") if gpu.strip() and gpu != "-1"]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, _ in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]
