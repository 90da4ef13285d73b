"""Check that the compiler computes correctly, as far as is known before the first step."""

import json
import os
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from common.errors import UserError
from common.files import cache_folder, read_json_object, sha256, write_atomically
from common.processor import processor_id

ROWS = np.arange(3 * 32_769, dtype=np.float32).reshape(-1, 3)
ADVICE = "install the one in requirements/, or set XLA_FLAGS=--xla_cpu_experimental_ynn_fusion_type= (nothing after it)"


@jax.jit
@jax.vmap
def square_rows(row: Float[Array, "3"]) -> Float[Array, ""]:
    """3 (a + b + c)². On CPUs, jaxlib 0.10.2 gets the last of 32,769 rows wrong (jax#39103)."""
    return jnp.sum(jnp.matmul(jnp.ones((3, 3)), row, precision="highest") ** 2)  # a GPU's TF32 would differ by more


def check_compiler() -> None:
    """UserError if this process's compiler has a known bug or has failed an audit."""
    expected = 3 * ROWS.astype(np.float64).sum(axis=1) ** 2
    if not np.allclose(np.asarray(square_rows(ROWS)), expected, rtol=1e-4):
        raise UserError(f"{describe_compiler()} computes wrong numbers here (jax#39103): {ADVICE}")
    if wrong := read_json_object(_verdict_file()).get("wrong"):
        found = f"as scripts/check_numbers.py found ({', '.join(wrong)})"
        advice = "install another version or set other XLA_FLAGS; or check again"
        raise UserError(f"{describe_compiler()} computes wrong numbers here, {found}: {advice}")


def is_audited() -> bool:
    """Whether scripts/check_numbers.py has found this compiler correct on this processor."""
    return read_json_object(_verdict_file()).get("wrong") == []


def keep_verdict(wrong: list[str]) -> None:
    """Record which parts an audit found to be wrong; UserError if it cannot be written."""
    write_atomically(_verdict_file(), json.dumps({"compiler": describe_compiler(), "wrong": wrong}) + "\n")


def describe_compiler() -> str:
    """The version and the flags of the compiler, and the device."""
    flags = os.environ.get("XLA_FLAGS", "")
    return f"jaxlib {version('jaxlib')} on {jax.devices()[0].device_kind}{f' with XLA_FLAGS={flags}' * bool(flags)}"


def _verdict_file() -> Path:
    return cache_folder() / "numbers" / f"{sha256(describe_compiler() + processor_id())[:16]}.json"
