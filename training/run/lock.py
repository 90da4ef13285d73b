"""One run directory, one training process.

The lock is the operating system's: it goes with the process that holds it, however that ends.
"""

import contextlib
import json
import os
import platform
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from common.errors import UserError
from common.files import told_as_user_error, write_atomically
from training.devices.distributed import is_first

LOCK, HOLDER = ".lock", "process.json"


@contextlib.contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    """Hold a run directory, made if need be; UserError names the process that holds it already.

    A directory in which nothing else was written, since a check failed, is removed again. Of the processes of one run,
    the first holds it for all.
    """
    if not is_first():
        yield
        return
    is_new = not run_dir.exists()
    with told_as_user_error(run_dir):
        run_dir.mkdir(parents=True, exist_ok=True)
        lock = FileLock(run_dir / LOCK, blocking=False)
        try:
            lock.acquire()
        except Timeout:
            raise UserError(f"{run_dir} is in use by {_holder(run_dir)}; wait, or choose run_dir=FOLDER") from None
    try:
        write_atomically(run_dir / HOLDER, json.dumps(_this_process()) + "\n")
        with _loss_explained(run_dir):
            yield
    finally:
        if is_new:
            _remove_if_unused(run_dir)
        lock.release()


@contextlib.contextmanager
def _loss_explained(run_dir: Path) -> Iterator[None]:
    """What fails because the folder is gone is told as that."""
    try:
        yield
    except UserError:
        refuse_if_lost(run_dir)
        raise


def refuse_if_lost(run_dir: Path) -> None:
    """UserError if ``run_dir`` is no longer the folder that this process holds: moved, deleted or unmounted."""
    if not is_first():
        return
    try:
        found = json.loads((run_dir / HOLDER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    this = _this_process()
    if {key: found.get(key) for key in ("pid", "host")} != {key: this[key] for key in ("pid", "host")}:
        raise UserError(
            f"{run_dir} is not the folder any more in which this run started: was it moved, or its disk unmounted? "
            "Put it back, and start the same command again"
        )


def _this_process() -> dict[str, int | str]:
    return {"pid": os.getpid(), "host": platform.node(), "since": datetime.now().isoformat(" ", "seconds")}


def _holder(run_dir: Path) -> str:
    try:
        holder = json.loads((run_dir / HOLDER).read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _remove_if_unused(run_dir: Path) -> None:
    with contextlib.suppress(OSError):
        if {path.name for path in run_dir.iterdir()} <= {LOCK, HOLDER}:
            (run_dir / HOLDER).unlink(missing_ok=True)
            (run_dir / LOCK).unlink(missing_ok=True)
            run_dir.rmdir()
