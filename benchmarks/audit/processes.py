"""Run an audit in three processes: the compiled parts, the same again, and the references, compiled in another way."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np

from benchmarks.audit.compare import Finding, compare
from common.errors import UserError
from common.programs import program_environment

# Turn off LLVM's optimization, YNN's kernels and, where jaxlib still has older ones, the newer fusion emitters.
# References also run without jit.
OTHER_WAY = "--xla_backend_optimization_level=0 --xla_cpu_experimental_ynn_fusion_type="
OLDER_EMITTERS = " --xla_cpu_use_fusion_emitters=false" * version("jaxlib").startswith("0.10.")


def audit(config: str, overrides: list[str]) -> list[Finding]:
    """Compare every part of a config; UserError if a process ends early, as when memory is short."""
    with tempfile.TemporaryDirectory(prefix="puente-numbers-") as folder:
        folders = {name: Path(folder) / name for name in ("compiled", "again", "reference")}
        for name, place in folders.items():
            print(f"{name} …", file=sys.stderr, flush=True)
            place.mkdir()
            compute_apart(name, place, config, overrides)
        parts, again = (json.loads((folders[name] / "parts.json").read_text()) for name in ("compiled", "again"))
        # Without this flag, a GPU may add in a different order each time.
        flags = os.environ.get("XLA_FLAGS", "")
        in_any_order = jax.default_backend() == "gpu" and "--xla_gpu_deterministic_ops=true" not in flags
        findings = []
        for number, (part, other) in enumerate(zip(parts, again, strict=True)):
            found, expected = (dict(np.load(folders[name] / f"{number}.npz")) for name in ("compiled", "reference"))
            same_bits = len({*part["digests"], *other["digests"]}) == 1 or in_any_order
            findings.append(compare(part["name"], part["tolerance"], found, expected, same_bits))
        return findings


def compute_apart(name: str, folder: Path, config: str, overrides: list[str]) -> None:
    mode, environment = "compiled", program_environment()
    if name == "reference":
        mode, flags = "reference", os.environ.get("XLA_FLAGS", "")
        environment |= {"XLA_FLAGS": f"{flags} {OTHER_WAY}{OLDER_EMITTERS}".strip(), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "benchmarks.audit.worker", mode, str(folder), config, *overrides]
    if code := subprocess.run(command, env=environment, check=False).returncode:
        raise UserError(f"the process of what is {name} ended with {code}: is there enough memory for {config}?")
