"""Speed and memory of contestants that do the same work.

They take turns in one run: a machine that others slow down slows all of them down, and the best of several rounds is
the one that was disturbed least.
"""

import importlib
import importlib.util
import math
import multiprocessing
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Call = Callable[[], Any]
Name = TypeVar("Name", bound=Hashable)
SHORTEST = 0.02  # seconds of one timing, many calls of a fast contestant: the clock and the first launch weigh nothing


def use_cores(count: int) -> None:
    """Start this program again as JAX and PyTorch must find it to compute on so many cores, unless it has been."""
    environment = {
        "JAX_PLATFORMS": "cpu",
        "OMP_NUM_THREADS": str(count),
        # As in train.py: memory from the kernel in pages of 2 MB. Whoever keeps all scores needs it most.
        "GLIBC_TUNABLES": os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),
    }
    if count == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])
    if not environment.items() <= os.environ.items():
        os.environ.update(environment)
        os.execv(sys.executable, sys.orig_argv)


def all_cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def milliseconds_in_turns(calls: Mapping[Name, Call], rounds: int) -> dict[Name, float]:
    """Milliseconds of one call of each, in its best round. The first call of all compiles, and is not timed."""
    for call in calls.values():
        jax.block_until_ready(call())
    return best_in_turns({name: partial(seconds, call) for name, call in calls.items()}, rounds)


def best_in_turns(timers: Mapping[Name, Callable[[int], float]], rounds: int) -> dict[Name, float]:
    """Milliseconds of one call of each, in its best round; a timer makes so many calls and gives seconds for one."""
    repetitions = {name: math.ceil(SHORTEST / timer(1)) for name, timer in timers.items()}
    best = dict.fromkeys(timers, math.inf)
    for _ in range(rounds):
        for name, timer in timers.items():
            best[name] = min(best[name], 1e3 * timer(repetitions[name]))
    return best


def seconds(call: Call, repetitions: int) -> float:
    """Mean time of one call. On a CPU each waits for the one before; a GPU gets all at once, and is never idle."""
    waits = jax.default_backend() == "cpu"
    start = time.perf_counter()
    for _ in range(repetitions):
        result = call()
        if waits:
            jax.block_until_ready(result)
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / repetitions


class Apart:
    """Calls that a process of their own makes: libraries that have threads slow each other down where they share one.

    libgomp, for one, spins for a moment before its threads sleep, but hardly does so once all of them in the process,
    idle ones too, are more than the cores: a fast contestant would pay for the presence of the others.
    """

    def __init__(self, prepare: Callable[[], Mapping[Any, Call]]):
        """``prepare`` is pickled, and makes the calls in that process; each is made once, and compiled."""
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        try:
            self.names = self._pool.submit(_prepare_here, prepare).result()
        except BaseException:
            self.close()  # or the process would keep its memory
            raise

    def seconds(self, name: Hashable, repetitions: int) -> float:
        """Mean time of one call."""
        return self._pool.submit(_seconds_here, name, repetitions).result()

    def result(self, name: Hashable) -> Any:
        """What one call gives, pickled."""
        return self._pool.submit(_result_here, name).result()

    def close(self) -> None:
        self._pool.shutdown()


_calls_here: dict[Any, Call] = {}  # of a process of ``Apart``


def _prepare_here(prepare: Callable[[], Mapping[Any, Call]]) -> list[Any]:
    _calls_here.update(prepare())
    for call in _calls_here.values():
        jax.block_until_ready(call())
    return list(_calls_here)


def _seconds_here(name: Hashable, repetitions: int) -> float:
    return seconds(_calls_here[name], repetitions)


def _result_here(name: Hashable) -> Any:
    return _calls_here[name]()


def rise_of_peak_memory(prepare: Callable[[], Call]) -> int | None:
    """By how many bytes a call raises the peak of a fresh process's memory, its result included. Linux; else None.

    ``prepare`` is pickled, and makes the call in that process; what it uses itself does not count.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_rise_here, prepare).result()


def _rise_here(prepare: Callable[[], Call]) -> int | None:
    call = prepare()
    try:
        # Not getrusage's ru_maxrss, which a child inherits from its parent. 5 sets the peak to what is in use now.
        Path("/proc/self/clear_refs").write_text("5")
        before = _peak()
        result = jax.block_until_ready(call())
        after = _peak()
    except OSError:
        return None
    del result
    return after - before


def peak_of_process() -> int | None:
    """Bytes of memory that this process has had at most: on a GPU the device's, on a CPU all of its own (Linux)."""
    if statistics := jax.devices()[0].memory_stats():
        return int(statistics["peak_bytes_in_use"])
    try:
        return _peak()
    except OSError:
        return None


def _peak() -> int:
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def memory_limit() -> int:
    """Bytes of the device; on a CPU those of the machine, or no limit where it does not tell."""
    if statistics := jax.devices()[0].memory_stats():
        return statistics["bytes_limit"]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return sys.maxsize


def matrix_size() -> tuple[int, str]:
    """Rows and dtype of the square matrices whose product tells what the machine can do at best."""
    return (1024, "float32") if jax.default_backend() == "cpu" else (8192, "bfloat16")


def matrix_products(narrow: bool = False) -> dict[str, Call]:
    """The product of two such matrices, 2 · rows³ operations, by each library that can.

    With ``narrow`` also of bfloat16 operands where the size above has others; JAX gives float32 results, as a model
    with ``matmul_dtype=bfloat16`` has them, and torch bfloat16 ones, as its autocast has them.
    """
    size, dtype = matrix_size()
    numbers = np.random.default_rng(0).standard_normal((size, size), np.float32)
    torch = torch_if_installed()
    products: dict[str, Call] = {}
    for operands in dict.fromkeys([dtype, *(["bfloat16"] if narrow else [])]):
        matrix, suffix = jnp.asarray(numbers, operands), "" if operands == dtype else f" {operands}"
        product = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32 if suffix else None))
        products[f"jax{suffix}"] = partial(product, matrix, matrix)
        if torch and dtype == "float32":
            dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
            tensor = torch.from_numpy(numbers).to(dtypes[operands])
            products[f"torch{suffix}"] = partial(torch.mm, tensor, tensor)
    return products


def torch_if_installed() -> Any:
    """PyTorch on the threads of ``use_cores``, else one; or None: it is a contestant, never a dependency."""
    if importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))
    return torch


def processor() -> str:
    """The CPU's name."""
    try:
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return next(iter(names), platform.processor() or platform.machine())
