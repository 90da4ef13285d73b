"""The machine under test: its cores and its memory."""

import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError

Call = Callable[[], Any]


def use_gpu() -> None:
    """UserError unless JAX computes on a GPU."""
    if jax.default_backend() != "gpu":
        raise UserError(f"--gpu: JAX sees no GPU here but a {jax.default_backend()}; pip install -e '.[cuda]' on one")


def use_cores(count: int) -> None:
    """Restart this program, unless it is already set up, so that JAX and PyTorch compute on ``count`` CPU cores."""
    environment = {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": str(count),
        # As in train.py: memory pages of 2 MB. Contestants that store all scores benefit most.
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    }
    if count == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
    if not environment.items() <= os.environ.items():
        os.environ.update(environment)
        os.execv(sys.executable, sys.orig_argv)


def processor() -> str:
    """Return the name of the CPU."""
    description = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", description.read_text()) if description.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def peak_memory() -> int | None:
    """Return this process's peak memory in bytes: on a GPU the device's, on a CPU its own (Linux only, else None)."""
    if statistics := jax.devices()[0].memory_stats():
        return int(statistics["peak_bytes_in_use"])
    # Not getrusage's ru_maxrss, which a child inherits from its parent.
    status = Path("/proc/self/status")
    kilobytes = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else []
    return 1024 * int(kilobytes[0]) if kilobytes else None
