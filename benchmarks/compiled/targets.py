"""Accelerators that programs are compiled for on any machine: what the compilers have to be told about each.

NVIDIA's compiler takes a GPU's facts as text, Google's knows its TPUs by name. Neither looks for a device.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version
from importlib.util import find_spec
from unittest.mock import patch

import jax
from jax.experimental import topologies

from attention import Device, tracing_for
from benchmarks.cost.accelerators import ACCELERATORS, Accelerator
from common.errors import UserError
from common.text import in_brief

FORMS = "with a number of GPUs, as h200:8, or a slice of TPUs, as v5e:4x4"
CONFIG = """
platform_name: "CUDA"
device_description_str: "{name}"
runtime_version {{ major: 13 }}
dnn_version_info {{ major: 9 minor: 10 }}
gpu_device_info {{
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  core_count: {multiprocessors}
  fpus_per_core: {units}
  clock_rate_ghz: {clock}
  device_memory_size: {memory:.0f}
  memory_bandwidth: {memory_bandwidth:.0f}
  l2_cache_size: {cache}
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: {threads}
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: {shared_by_block}
  shared_memory_per_core: {shared}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
}}
"""


@dataclass(frozen=True)
class Gpu:
    """What NVIDIA's compiler is told about a GPU, besides its memory."""

    major: int  # compute capability
    minor: int
    multiprocessors: int
    units: int  # float32 units of a multiprocessor
    clock: float  # GHz
    cache: int  # bytes of the second level
    threads: int  # at once on a multiprocessor
    shared: int  # bytes of shared memory of a multiprocessor
    shared_by_block: int


# NVIDIA's white papers "H100 Tensor Core GPU Architecture" and "Turing GPU Architecture", and the table of compute
# capabilities in the CUDA programming guide. H200 is an H100 (SXM) with other memory.
HOPPER = Gpu(9, 0, 132, 128, 1.98, 50 * 2**20, 2048, 233472, 232448)
GPUS = {"t4": Gpu(7, 5, 40, 64, 1.59, 4 * 2**20, 1024, 65536, 65536), "h100": HOPPER, "h200": HOPPER}
TPUS = {"v5e": 2, "v5p": 3, "v6e": 2}  # dimensions of their torus
GPU_PACKAGES = {"jax_plugins.xla_cuda13": "jax-cuda13-plugin", "nvidia.cu13": "nvidia-cuda-nvcc"}
TPU_PACKAGES = {"libtpu": "libtpu"}
# libtpu asks the cloud which TPU it is on unless it is told, and serves one process at a time unless it may serve more.
LIBTPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}


@dataclass(frozen=True)
class Target:
    """Devices that are not there: only compiling for them is possible."""

    name: str
    accelerator: Accelerator
    device: Device
    devices: tuple[jax.Device, ...]

    def compilers(self) -> dict[str, str]:
        """The versions of the vendor's packages."""
        packages = TPU_PACKAGES if self.device.platform == "tpu" else GPU_PACKAGES
        return {name: version(name) for name in packages.values()}

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace for this target. JAX asks the GPU two questions before it lets cuDNN serve; they are answered here."""
        with ExitStack() as stack:
            stack.enter_context(tracing_for(*self.device))
            if self.device.platform == "gpu":
                module = "jax._src.cudnn.fused_attention_stablehlo"
                stack.enter_context(patch(f"{module}.check_cudnn_version", lambda: 91000))
                stack.enter_context(patch(f"{module}.check_compute_capability", lambda _: True))
            yield


def open_target(name: str) -> Target:
    """The devices of ``name``, such as h200:8 or v5e:4x4. UserError if it is unknown or its compiler is missing."""
    chip, _, shape = name.partition(":")
    if chip not in ACCELERATORS:
        near = get_close_matches(chip, ACCELERATORS, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise UserError(f"unknown target {in_brief(name)}{hint}. Targets are {', '.join(ACCELERATORS)}, {FORMS}")
    jax.config.update("jax_platforms", "cpu")  # a device that is there is left alone
    jax.config.update("jax_enable_compilation_cache", False)  # what no device can load cannot be read from it
    # Less search for fast code: on a TPU a third of the time, and the same peak within 2 %.
    jax.config.update("jax_optimization_level", "O0" if chip in TPUS else "UNKNOWN")
    return _open_gpus(chip, shape) if chip in GPUS else _open_tpus(chip, shape)


def _open_gpus(chip: str, count: str) -> Target:
    accelerator, gpu = ACCELERATORS[chip], GPUS[chip]
    if not re.fullmatch(r"[1-9]\d{0,4}", count) or (int(count) > accelerator.node and int(count) % accelerator.node):
        raise _mistake(
            chip, count, f"a number of GPUs, as {chip}:8; several nodes have a multiple of {accelerator.node}"
        )
    _require(GPU_PACKAGES, chip, "aot-cuda")
    number = int(count)
    hosts = max(1, number // accelerator.node)
    topology = topologies.get_topology_desc(
        chip,
        platform="cuda",
        target_config=CONFIG.format_map(vars(accelerator) | vars(gpu)),
        topology=f"1x{hosts}x{number // hosts}",  # slices × hosts × GPUs of a host
    )
    return Target(f"{chip}:{count}", accelerator, Device("gpu", gpu.major + gpu.minor / 10), tuple(topology.devices))


def _open_tpus(chip: str, shape: str) -> Target:
    dimensions = TPUS[chip]
    if not re.fullmatch(r"[1-9]\d{0,2}" + r"x[1-9]\d{0,2}" * (dimensions - 1), shape):
        raise _mistake(chip, shape, f"a slice of {dimensions} dimensions, as {chip}:{'x'.join(['2'] * dimensions)}")
    _require(TPU_PACKAGES, chip, "aot-tpu")
    os.environ.update(LIBTPU)
    single = {"chips_per_host_bounds": [1, 1, 1]} if set(shape.split("x")) == {"1"} else {}
    try:
        topology = topologies.get_topology_desc(platform="tpu", topology_name=f"{chip}:{shape}", **single)
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f"target {chip}:{shape}: libtpu knows no such slice: {in_brief(str(error))}") from None
    return Target(f"{chip}:{shape}", ACCELERATORS[chip], Device("tpu"), tuple(topology.devices))


def _mistake(chip: str, shape: str, needed: str) -> UserError:
    return UserError(f"target {in_brief(f'{chip}:{shape}' if shape else chip)}: give {needed}")


def _require(packages: dict[str, str], chip: str, extra: str) -> None:
    missing = [package for module, package in packages.items() if not _is_installed(module)]
    if missing:
        raise UserError(f"compiling for {chip} needs {', '.join(missing)}: pip install -e '.[{extra}]'")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not there
        return False
