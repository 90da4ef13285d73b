"""One training process per run directory. The lock ends with the process that holds it: see common/lock.py."""

import contextlib
import json
import os
import platform
import secrets
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from filelock import Timeout

from common.errors import UserError
from common.files import explain_write_errors, read_json_object, write_atomically
from common.lock import acquire, is_held, lease_path
from training.devices.distributed import any_process, broadcast_from_first, is_first
from training.run.layout import LOCK, LOCK_HOLDER

PATIENCE = 20.0  # seconds until another machine sees a new file on a shared disk


@contextlib.contextmanager
def lock_run(run_dir: Path) -> Iterator[None]:
    """Lock a run directory, creating it if needed; UserError names the process that already holds it.

    A new directory is removed again if a check failed and nothing was written to it. If a run has several processes,
    the first holds the lock for all; UserError on all of them if one does not see the same directory.
    """
    if not is_first():
        check_shared(run_dir)
        yield
        return
    is_new = not run_dir.exists()
    with explain_write_errors(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        try:
            lock = acquire(run_dir / LOCK, wait=False)
        except Timeout:
            holder = "another process"
            with contextlib.suppress(KeyError):
                holder = "process {pid} on {host} since {since}".format_map(read_json_object(run_dir / LOCK_HOLDER))
            raise UserError(f"{run_dir} is in use by {holder}; wait, or choose run_dir=FOLDER") from None
    try:
        facts = {"since": datetime.now().isoformat(" ", "seconds"), "token": secrets.randbelow(2**31)}
        write_atomically(run_dir / LOCK_HOLDER, json.dumps(_this_process() | facts) + "\n")
        try:
            check_shared(run_dir)
            yield
        except UserError:
            check_not_lost(run_dir)  # if the folder is gone, that explains the error better
            raise
    finally:
        if is_new:
            _remove_if_unused(run_dir)
        lock.release()


def is_in_use(run_dir: Path) -> bool:
    """Whether a process holds the run directory now; False if opening the lock is not permitted, as in others' runs."""
    with contextlib.suppress(OSError):
        return (run_dir / LOCK).exists() and is_held(run_dir / LOCK)
    return False


def check_shared(run_dir: Path) -> None:
    """UserError on every process unless all find the first one's token in ``run_dir``; this may take a while."""

    def read_token() -> int | None:
        return read_json_object(run_dir / LOCK_HOLDER).get("token")

    token, end = broadcast_from_first(read_token() if is_first() else None), time.monotonic() + PATIENCE
    while not (is_found := read_token() == token) and time.monotonic() < end:
        time.sleep(0.2)
    if any_process(not is_found):
        problem = f"{run_dir} is not the same folder for all processes of this run"
        raise UserError(f"{problem}: set run_dir to one on a disk that their machines share")


def check_not_lost(run_dir: Path) -> None:
    """UserError if ``run_dir`` is no longer the folder that this process locked: moved, deleted or unmounted."""
    if is_first() and not _this_process().items() <= read_json_object(run_dir / LOCK_HOLDER).items():
        advice = "was it moved, or its disk unmounted? Put it back, and start the same command again"
        raise UserError(f"{run_dir} is no longer the folder in which this run started: {advice}")


def _this_process() -> dict[str, int | str]:
    return {"pid": os.getpid(), "host": platform.node()}


def _remove_if_unused(run_dir: Path) -> None:
    with contextlib.suppress(OSError):
        own = [run_dir / LOCK_HOLDER, run_dir / LOCK, lease_path(run_dir / LOCK)]
        if set(run_dir.iterdir()) <= set(own):
            for path in own:
                path.unlink(missing_ok=True)
            run_dir.rmdir()
