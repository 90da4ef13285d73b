"""Several processes, one run: how they find each other, who speaks, what they agree on, and how they end.

All of them run the same program on the same steps; what differs is the rows that each reads. The first one alone
prints, logs and writes, but for checkpoints, of which each writes what its devices hold.
"""

import contextlib
import importlib.util
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from glob import glob

import jax
import numpy as np
from jax.experimental import multihost_utils

from common.digests import sha256
from common.errors import UserError
from training.config import MeshConfig
from training.run.signals import handle_signals

PATIENCE = 300  # seconds until all processes must have started
LAST_WORDS = 1  # seconds that the others have, once the first one is to end: when it is gone, JAX aborts them
# What the collectives of CPUs, GPUs and TPUs say when a process that takes part is gone.
GONE = re.compile(r"gloo|nccl|unavailable|connection|coordination|heartbeat|socket|deadline|peer", re.IGNORECASE)


def join_others(config: MeshConfig) -> None:
    """Find the other processes of the run, if there are any; before anything asks for a device.

    UserError if that cannot be; the program ends if they are not all there after some minutes.
    """
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM from training/run/signals.py
    try:
        if config.coordinator or started_by_scheduler():
            address, number = config.coordinator or None, config.process if config.coordinator else None
            with _waiting():
                jax.distributed.initialize(
                    address, config.processes or None, number, initialization_timeout=2 * PATIENCE
                )
    except (RuntimeError, ValueError) as error:
        told = str(error).partition("\n")[0]
        raise UserError(f"the processes of this run do not find each other (mesh.coordinator): {told}") from None


@contextlib.contextmanager
def _waiting() -> Iterator[None]:
    """Inside, a signal ends the program at once, and so does the end of patience: JAX's own would be an abort."""
    end_of_patience = threading.Timer(PATIENCE, _give_up)
    end_of_patience.daemon = True
    end_of_patience.start()
    try:
        with handle_signals(signal.SIG_DFL):
            yield
    finally:
        end_of_patience.cancel()


def _give_up() -> None:
    told = f"error: the processes of this run did not find each other in {PATIENCE} seconds: start all of them, each "
    print(told + "with the mesh.coordinator of the first", file=sys.stderr, flush=True)
    os._exit(2)


def started_by_scheduler() -> bool:
    """Whether a scheduler that JAX knows has started this process as one of several."""
    tasks = (os.environ.get(name, "1") for name in ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"))
    on_kubernetes = {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= os.environ.keys()
    on_tpu = bool(glob("/dev/accel*") + glob("/dev/vfio/[0-9]*")) and importlib.util.find_spec("libtpu") is not None
    return on_kubernetes or on_tpu or any(count.isdigit() and int(count) > 1 for count in tasks)


def is_first() -> bool:
    """Whether this process is the one that prints, logs and writes."""
    return jax.process_index() == 0


def wait_for_all(what: str) -> None:
    """Go on when every process has come here."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(what)


def of_first(number: int | None) -> int | None:
    """What the first process says: a number from 0, or None."""
    if jax.process_count() == 1:
        return number
    said = int(multihost_utils.broadcast_one_to_all(np.int32(-1 if number is None else number)))
    return None if said < 0 else said


def of_any(flag: bool) -> bool:
    """Whether any process says so."""
    return bool(_of_each(np.array([flag], np.uint8)).any())


def added(total: str) -> str:
    """The sum of all processes' numbers modulo 2^256, in 64 hexadecimal digits."""
    numbers = _of_each(np.frombuffer(bytes.fromhex(total), np.uint8))
    return f"{sum(int.from_bytes(number.tobytes()) for number in numbers) % 2**256:064x}"


def refuse_difference(what: str, text: str) -> None:
    """UserError on every process, the same one, if the text of any differs from the first one's."""
    digests = _of_each(np.frombuffer(bytes.fromhex(sha256(text.encode())), np.uint8))
    if (other := int((digests != digests[0]).any(axis=1).argmax())) > 0:
        raise UserError(f"process {other} has another {what} than process 0: give all of them the same")


def _of_each(numbers: np.ndarray) -> np.ndarray:
    """The arrays of all processes, one below the other."""
    if jax.process_count() == 1:
        return numbers[None]
    return np.asarray(multihost_utils.process_allgather(numbers)).reshape(jax.process_count(), -1)


def leave_together() -> None:
    """Part from the other processes at the end of the run, when all have come here."""
    if jax.process_count() > 1:
        jax.distributed.shutdown()


@contextlib.contextmanager
def ending_with_others(told: str) -> Iterator[None]:
    """Inside, an error of one of several processes ends this one at once, and so the others; ``told`` says what to do.

    An ordinary exit would wait for them, and they would wait for this one.
    """
    try:
        yield
    except BaseException as error:
        if not jax.distributed.is_initialized():
            raise
        code = _told(error, told)
        sys.stdout.flush()
        if is_first():
            time.sleep(LAST_WORDS)
        os._exit(code)


def is_loss(error: BaseException) -> bool:
    """Whether an error says that another process is gone."""
    return jax.process_count() > 1 and bool(GONE.search(f"{type(error).__name__} {error}"))


def _told(error: BaseException, told: str) -> int:
    """Print what happened; the exit code."""
    if isinstance(error, SystemExit):  # it has been told
        code = error.code if isinstance(error.code, int) else 1
    elif is_loss(error):
        first_line = str(error).partition("\n")[0]
        print(f"\nanother process of this run is gone, or cannot be reached: {told} ({first_line})", file=sys.stderr)
        code = 1
    else:
        traceback.print_exception(error)
        code = 1
    sys.stderr.flush()
    return code
