"""Locks between processes: the operating system's or, on a file system without any, as Lustre may be, a lease.

An operating-system lock ends with its holder, however that ends. A lease is a file that its holder keeps refreshing:
it is taken over at once if the process it names is known to be dead, and otherwise, e.g. from another machine, once it
has not been refreshed for a while.
"""

import errno
import time
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLease, Timeout

from common.errors import write_note

NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK}
LEASE_SECONDS = 30.0


def acquire(path: Path, *, wait: bool) -> BaseFileLock:
    """Lock a file until released. Timeout if another process holds it, unless ``wait``; OSError if there is no file."""
    if lock := system_lock(path, wait=wait):
        return lock
    lease = SoftFileLease(lease_path(path), lease_duration=LEASE_SECONDS)
    try:
        lease.acquire(blocking=False)
    except Timeout:
        if not wait:
            write_note(f"note: {path.parent} has no file locks: checking if its holder is alive takes up to a minute")
        lease.acquire(timeout=-1 if wait else 1.5 * LEASE_SECONDS)
    return lease


def system_lock(path: Path, *, wait: bool) -> FileLock | None:
    """The operating system's lock, or None if there is none; raises Timeout and OSError like ``acquire``."""
    lock = FileLock(path, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return None
    return lock


def is_held(path: Path) -> bool:
    """Whether another process holds the lock now. OSError if the file cannot be opened."""
    lease = lease_path(path)
    try:
        lock = system_lock(path, wait=False)
        if lock is None and lease.exists() and time.time() - lease.stat().st_mtime < LEASE_SECONDS:
            return True
        (lock or acquire(path, wait=False)).release()
    except Timeout:
        return True
    return False


def lease_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lease")
