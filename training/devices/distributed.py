"""Several processes, one run: how they connect, who writes, what they agree on, and how they end.

All processes run the same program on the same steps; they differ only in the rows that they read. Only the first
process prints, logs and writes, except for checkpoints, where each process writes what its devices hold.
"""

import contextlib
import importlib.util
import os
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from glob import glob

import jax
import numpy as np
from jax.experimental import multihost_utils

from common.errors import UserError, write_note
from common.files import sha256
from common.signals import end_process, handle_signals
from training.config import MeshConfig

STARTUP_TIMEOUT = 300  # seconds until all processes must have started
NOTE_AFTER = 10
CLAIMS = list[socket.socket]()
GRACE_SECONDS = 1  # for the other processes to exit on their own: JAX aborts them once the first process is gone
# What collectives on CPUs, GPUs and TPUs report when a process is gone.
LOST_PROCESS = re.compile(r"(?i)gloo|nccl|unavailable|connection|coordination|heartbeat|socket|deadline|peer")


def join_processes(config: MeshConfig) -> None:
    """Connect to the run's other processes, if any, before anything asks for a device; UserError if that fails."""
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM from common/signals.py
    if config.coordinator:
        claim_number(config)
    try:
        if config.coordinator or started_by_scheduler():
            number = config.process if config.coordinator else None
            place = config.coordinator or None, config.processes or None, number
            with _startup_timeout():
                jax.distributed.initialize(*place, initialization_timeout=2 * STARTUP_TIMEOUT)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise UserError(f"the processes of this run cannot find each other (mesh.coordinator): {reason}") from None


def claim_number(config: MeshConfig) -> None:
    """UserError, where JAX would crash, if this number is taken on this machine or the first's port cannot be used."""
    if sys.platform == "linux":
        CLAIMS.append(claim := socket.socket(socket.AF_UNIX))  # for as long as the process lives
        try:
            claim.bind(f"\0puente {config.coordinator} {config.process}")
        except OSError:
            taken = f"mesh.process={config.process} is running here already"
            raise UserError(f"{taken}: give each process its own number") from None
    if config.process == 0:
        port = int(config.coordinator.rpartition(":")[2])
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a run may just have ended
            try:
                trial.bind(("", port))
            except OSError as error:
                advice = "is another program using it? Choose another in mesh.coordinator"
                raise UserError(f"port {port} cannot be used ({error.strerror}): {advice}") from None


@contextlib.contextmanager
def _startup_timeout() -> Iterator[None]:
    """Inside, signals and the timeout end the program at once; JAX's own timeout would abort it."""
    note = f"note: waiting at most {STARTUP_TIMEOUT} seconds for the other processes of this run"
    timers = [threading.Timer(STARTUP_TIMEOUT, _give_up), threading.Timer(NOTE_AFTER, write_note, [note])]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        with handle_signals(signal.SIG_DFL):
            yield
    finally:
        for timer in timers:
            timer.cancel()


def _give_up() -> None:
    problem = f"the processes of this run did not find each other in {STARTUP_TIMEOUT} seconds"
    advice = "start all of them, each with the mesh.coordinator of the first"
    print(f"error: {problem}: {advice}", file=sys.stderr, flush=True)
    os._exit(2)


def started_by_scheduler() -> bool:
    """Whether a scheduler supported by JAX has started this process as one of several."""
    tasks = (os.environ.get(name, "1") for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"))
    on_kubernetes = {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= os.environ.keys()
    on_tpu = bool(glob("/dev/accel*") + glob("/dev/vfio/[0-9]*")) and importlib.util.find_spec("libtpu") is not None
    return on_kubernetes or on_tpu or any(count.isdecimal() and int(count) > 1 for count in tasks)


def is_first() -> bool:
    """Whether this is the process that prints, logs and writes."""
    return jax.process_index() == 0


def wait_for_all(name: str) -> None:
    """Return when every process has reached the barrier with this name."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)


def broadcast_from_first(number: int | None) -> int | None:
    """The first process's number (at least 0) or None, on every process."""
    if jax.process_count() == 1:
        return number
    received = int(multihost_utils.broadcast_one_to_all(np.int32(-1 if number is None else number)))
    return None if received < 0 else received


def any_process(flag: bool) -> bool:
    """Whether the flag is set on any process."""
    return bool(_gather(np.array([flag], np.uint8)).any())


def sum_over_processes(number: str) -> str:
    """The sum of all processes' numbers modulo 2^256; numbers are 64 hexadecimal digits."""
    numbers = _gather(np.frombuffer(bytes.fromhex(number), np.uint8))
    return f"{sum(int.from_bytes(each.tobytes()) for each in numbers) % 2**256:064x}"


def check_same_on_all(what: str, text: str) -> None:
    """Raise the same UserError on every process if any process's text differs from the first one's."""
    digests = _gather(np.frombuffer(bytes.fromhex(sha256(text)), np.uint8))
    if (other := int((digests != digests[0]).any(axis=1).argmax())) > 0:
        raise UserError(f"process {other} has a different {what} than process 0: give all of them the same")


def _gather(numbers: np.ndarray) -> np.ndarray:
    if jax.process_count() == 1:
        return numbers[None]
    return np.asarray(multihost_utils.process_allgather(numbers)).reshape(jax.process_count(), -1)


def leave_processes() -> None:
    """Disconnect from the other processes at the end of the run, once all have arrived here."""
    if jax.process_count() > 1:
        jax.distributed.shutdown()
        CLAIMS.clear()


@contextlib.contextmanager
def end_all_on_error(advice: str) -> Iterator[None]:
    """In the block, an error in one of several processes ends this one at once, and thereby the others.

    An ordinary exit would wait for the others, which would wait for this one. ``advice`` says how to continue.
    """
    try:
        yield
    except BaseException as error:
        if not jax.distributed.is_initialized():
            raise
        code = 1
        if isinstance(error, SystemExit):  # already reported
            code = error.code if isinstance(error.code, int) else 1
        elif is_lost_process(error):
            reason = str(error).partition("\n")[0]
            print(f"\nanother process of this run is gone, or cannot be reached: {advice} ({reason})", file=sys.stderr)
        else:
            traceback.print_exception(error)
        if is_first():
            time.sleep(GRACE_SECONDS)
        end_process(code)


def is_lost_process(error: BaseException) -> bool:
    """Whether an error means that another process is gone."""
    return jax.process_count() > 1 and bool(LOST_PROCESS.search(f"{type(error).__name__} {error}"))
