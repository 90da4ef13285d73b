"""Settings of a program's process: standard streams, large memory pages, and a cache of compiled programs."""

import gc
import os
import signal
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from filelock import Timeout

from common.errors import write_note
from common.files import cache_folder
from common.lock import system_lock
from common.processor import processor_id
from common.streams import open_closed_streams

MAX_CACHE_BYTES = 1 << 30  # above this, JAX evicts the least recently used programs
# JAX settings that would change random draws or number types, or cause errors in JAX. Settings that may change rounding
# are recorded instead: training/run/environment.py.
LEFT_TO_JAX = (
    "ENABLE_X64 EXPLICIT_X64_DTYPES NUMPY_DTYPE_PROMOTION NUMPY_RANK_PROMOTION DEFAULT_PRNG_IMPL ENABLE_CUSTOM_PRNG "
    "LEGACY_PRNG_KEY RANDOM_SEED_OFFSET THREEFRY_PARTITIONABLE THREEFRY_GPU_KERNEL_LOWERING HIGH_DYNAMIC_RANGE_GUMBEL "
    "SOFTMAX_CUSTOM_JVP DISABLE_JIT NO_TRACING NO_EXECUTION DEBUG_NANS DEBUG_INFS DEBUG_KEY_REUSE ENABLE_CHECKS "
    "CHECK_TRACER_LEAKS ERROR_CHECKING_BEHAVIOR_NAN ERROR_CHECKING_BEHAVIOR_DIVIDE ERROR_CHECKING_BEHAVIOR_OOB "
    "TRANSFER_GUARD TRANSFER_GUARD_HOST_TO_DEVICE TRANSFER_GUARD_DEVICE_TO_HOST TRANSFER_GUARD_DEVICE_TO_DEVICE"
).split()


def prepare_process() -> None:
    """Set up the process before it imports JAX or reads input; may restart it, unless it belongs to another program.

    Environment variables stay, except those that would change numbers.
    """
    open_closed_streams()
    leave_numbers_to_jax()
    if is_own() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program handles it: no traceback from an import
    gc.set_threshold(100_000, 50, 100)  # tracing creates many long-lived objects, which frequent collections rescan
    enable_compilation_cache()
    if is_own() and sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
        # On a CPU, XLA allocates its buffers again at every step; pages of 2 MB instead of 4 kB make a step 1.2 to 1.3
        # times faster. glibc reads this setting only when a process starts.
        os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
        os.execv(sys.executable, sys.orig_argv)


def is_own() -> bool:
    """Whether the process runs only this program, and is not an interactive session or another program."""
    return sys.argv[0] in sys.orig_argv and not sys.flags.interactive


def leave_numbers_to_jax() -> None:
    """Drop settings made for other work: with them, the same config would give another model."""
    for name in (f"JAX_{name}" for name in LEFT_TO_JAX):
        if (value := os.environ.pop(name, None)) is not None:
            write_note(f"note: {name}={value} is left out: it would change the numbers of this program")


def enable_compilation_cache() -> None:
    """Let JAX cache compiled programs in the user's cache folder, for other processes and later starts.

    ``JAX_COMPILATION_CACHE_DIR`` chooses another folder, with JAX's own limits. Nothing is cached if it is empty, with
    ``JAX_ENABLE_COMPILATION_CACHE=false``, or if the folder is not writable or has no file locks: JAX would wait ten
    seconds for each program that another process left locked.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
        folder = cache_folder() / f"compiled-{processor_id()}"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # write access here is code execution in this process
        # JAX writes a program's access time last, and fails on a program without it, as a killed process leaves behind.
        for program in folder.glob("*-cache"):
            if not program.with_name(program.name.removesuffix("-cache") + "-atime").exists():
                program.unlink(missing_ok=True)
        if os.access(folder, os.W_OK) and has_locks(folder):
            os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
            os.environ.setdefault("JAX_COMPILATION_CACHE_MAX_SIZE", str(MAX_CACHE_BYTES))
            os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
            if version("jaxlib") == "0.10.1":  # it prints two errors for each program that it finds (jax#38445)
                os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def has_locks(folder: Path) -> bool:
    try:
        lock = system_lock(folder / ".has_locks", wait=False)
    except Timeout:
        return True
    if lock:
        lock.release()
    return lock is not None
