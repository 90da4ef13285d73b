"""The machine that is measured: its cores, its memory, and its rate in plain matrix products."""

import os
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from common.errors import UserError
from training.devices.preflight import device_memory

Call = Callable[[], Any]


def use_gpu() -> None:
    """Require that JAX computes on a GPU; UserError otherwise."""
    if jax.default_backend() != "gpu":
        raise UserError(f"--gpu: JAX sees no GPU here but a {jax.default_backend()}; pip install -e '.[cuda]' on one")


def use_cores(count: int) -> None:
    """Restart this program, unless it is set up already, so that JAX and PyTorch compute on ``count`` CPU cores."""
    environment = {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": str(count),
        # As in train.py: memory from the kernel in pages of 2 MB. Contestants that store all scores need it most.
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    }
    if count == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
    if not environment.items() <= os.environ.items():
        os.environ.update(environment)
        os.execv(sys.executable, sys.orig_argv)


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Return the name of the CPU."""
    description = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", description.read_text()) if description.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def peak_memory() -> int | None:
    """Return the most bytes that this process has used: of a GPU the device's, of a CPU its own (Linux; else None)."""
    if statistics := jax.devices()[0].memory_stats():
        return int(statistics["peak_bytes_in_use"])
    # Not getrusage's ru_maxrss, which a child inherits from its parent.
    status = Path("/proc/self/status")
    kilobytes = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else []
    return 1024 * int(kilobytes[0]) if kilobytes else None


def memory_limit() -> int:
    """Return the bytes of the device, or of a CPU's machine; ``sys.maxsize`` where the system does not report them."""
    if limit := device_memory():
        return limit
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return sys.maxsize


def matrix_size() -> tuple[int, str]:
    """Return the rows and the dtype of square matrices whose product shows what the machine can do at best."""
    return (1024, "float32") if jax.default_backend() == "cpu" else (8192, "bfloat16")


def matrix_products(*, with_bfloat16: bool = False) -> dict[str, Call]:
    """Return the product of two such matrices by JAX, and by PyTorch on a CPU that has it.

    ``with_bfloat16`` adds bfloat16 operands where the usual ones are wider: JAX then returns float32, as a model with
    ``matmul_dtype=bfloat16`` does, and PyTorch bfloat16, as its autocast does.
    """
    size, dtype = matrix_size()
    values = np.random.default_rng(0).standard_normal((size, size), np.float32)
    products: dict[str, Call] = {}
    for operands in {dtype: None, "bfloat16": None} if with_bfloat16 else [dtype]:
        matrix, suffix = jnp.asarray(values, operands), "" if operands == dtype else f" {operands}"
        product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32 if suffix else None))
        products[f"jax{suffix}"] = partial(product, matrix, matrix)
        if find_spec("torch") and dtype == "float32":
            from benchmarks.peers.pytorch import matrix_product

            products[f"torch{suffix}"] = matrix_product(values, operands)
    return products
