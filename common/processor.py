"""The processor that a program runs on."""

import os
import platform
from contextlib import suppress
from pathlib import Path

from common.files import sha256


def count_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_id() -> str:
    """A short digest of the processor's model and features: machines that share a home need separate machine code."""
    facts = [platform.machine()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        facts += sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return sha256("\n".join(facts))[:12]
