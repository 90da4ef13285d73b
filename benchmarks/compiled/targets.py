"""Accelerators to compile for on any machine, with the facts about each that the compilers need.

NVIDIA's compiler takes a GPU's properties as text; Google's knows its TPUs by name. Neither looks for a device.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import jax
from jax.experimental import topologies

from attention.kernels.request import Device, tracing_for
from common.errors import UserError
from common.text import in_brief


class Accelerator(NamedTuple):
    """A device by its vendor's published figures: bytes of memory, bytes per second, and devices per node."""

    name: str
    memory: float
    memory_bandwidth: float
    node: int


# NVIDIA's data sheets (eight T4 per node are an assumption); Google's pages "TPU v5e", "TPU v5p" and "TPU v6e" (TPU
# pods have no nodes).
ACCELERATORS = {
    "t4": Accelerator("NVIDIA T4", 16e9, 0.32e12, 8),
    "h100": Accelerator("NVIDIA H100", 80e9, 3.35e12, 8),
    "h200": Accelerator("NVIDIA H200", 141e9, 4.8e12, 8),
    "v5e": Accelerator("TPU v5e", 16e9, 0.819e12, 256),
    "v5p": Accelerator("TPU v5p", 95e9, 2.765e12, 8960),
    "v6e": Accelerator("TPU v6e", 32e9, 1.64e12, 256),
}
GPUS = {"t4": (7.5, "turing"), "h100": (9.0, "hopper"), "h200": (9.0, "hopper")}  # compute capability, facts
TPUS = {"v5e": 2, "v5p": 3, "v6e": 2}  # dimensions of their torus
# The compilers repeat exceptions on standard error. libtpu asks the cloud which TPU it runs on unless it is told, and
# serves one process at a time unless more are allowed.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


class Target(NamedTuple):
    """Devices that this machine does not have: they can only be compiled for."""

    name: str
    accelerator: Accelerator
    device: Device
    devices: tuple[jax.Device, ...]
    compilers: dict[str, str]  # versions of the vendor's packages

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace for this target. Patches private functions of JAX that ask a GPU for versions before calling cuDNN."""
        with ExitStack() as stack:
            stack.enter_context(tracing_for(*self.device))
            if self.device.platform == "gpu":
                module = "jax._src.cudnn.fused_attention_stablehlo"
                stack.enter_context(patch(f"{module}.check_cudnn_version", lambda: 91000))
                stack.enter_context(patch(f"{module}.check_compute_capability", lambda _: True))
            yield


def open_target(name: str) -> Target:
    """Return the target ``name``, such as h200:8 or v5e:4x4. UserError if it is unknown or its compiler is missing."""
    chip, _, shape = name.partition(":")
    if chip not in ACCELERATORS:
        near = get_close_matches(chip, ACCELERATORS, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        forms = "with a number of GPUs, as h200:8, or a slice of TPUs, as v5e:4x4"
        raise UserError(f"unknown target {in_brief(name)}{hint}. Targets are {', '.join(ACCELERATORS)}, {forms}")
    os.environ.update(ENVIRONMENT)
    jax.config.update("jax_platforms", "cpu")  # leaves devices of this machine alone
    jax.config.update("jax_enable_compilation_cache", False)  # no device can load cached programs
    # Less search for fast code: for a TPU, it takes a third of the time, with the same peak within 2 %.
    jax.config.update("jax_optimization_level", "O0" if chip in TPUS else "UNKNOWN")
    return _open_gpus(name, chip, shape) if chip in GPUS else _open_tpus(name, chip, shape)


def _open_gpus(name: str, chip: str, count: str) -> Target:
    accelerator, (capability, architecture) = ACCELERATORS[chip], GPUS[chip]
    node = accelerator.node
    if not re.fullmatch(r"[1-9]\d{0,4}", count) or (int(count) > node and int(count) % node):
        needed = f"a number of GPUs, as {chip}:8; several nodes have a multiple of {node}"
        raise UserError(f"target {in_brief(name)}: give {needed}")
    compilers = _versions(chip, "aot-cuda", "jax-cuda13-plugin", "nvidia-cuda-nvcc")
    facts = Path(__file__).with_name(f"{architecture}.textproto").read_text(encoding="utf-8") % accelerator._asdict()
    hosts = max(1, int(count) // node)
    shape = f"1x{hosts}x{int(count) // hosts}"  # slices × hosts × GPUs of a host
    topology = topologies.get_topology_desc(chip, platform="cuda", target_config=facts, topology=shape)
    return Target(name, accelerator, Device("gpu", capability), tuple(topology.devices), compilers)


def _open_tpus(name: str, chip: str, shape: str) -> Target:
    dimensions = TPUS[chip]
    if not re.fullmatch(r"[1-9]\d{0,2}" + r"x[1-9]\d{0,2}" * (dimensions - 1), shape):
        needed = f"a slice of {dimensions} dimensions, as {chip}:{'x'.join(['2'] * dimensions)}"
        raise UserError(f"target {in_brief(name)}: give {needed}")
    compilers = _versions(chip, "aot-tpu", "libtpu")
    single = {"chips_per_host_bounds": [1, 1, 1]} if set(shape.split("x")) == {"1"} else {}
    try:
        topology = topologies.get_topology_desc(platform="tpu", topology_name=name, **single)
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f"target {name}: libtpu knows no such slice: {in_brief(str(error))}") from None
    return Target(name, ACCELERATORS[chip], Device("tpu"), tuple(topology.devices), compilers)


def _versions(chip: str, extra: str, *packages: str) -> dict[str, str]:
    """Return the versions of the vendor's packages; UserError if one is missing."""
    try:
        return {package: version(package) for package in packages}
    except PackageNotFoundError as error:
        raise UserError(f"compiling for {chip} needs {error.name}: pip install -e '.[{extra}]'") from None
