"""Arrays that take long to compute, kept in the user's cache folder and mapped from there at later starts.

An entry is a folder of arrays. It is written under another name, flushed and renamed, and its last file lists the
SHA-256 of every other: an entry that is not as it was written is not used.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock

from common.files import cache_folder, hash_files, read_json_object, write_atomically

MAX_BYTES = 32 * 2**30  # of all entries, beyond which those least recently used are deleted
LIST = "sha256.json"
Arrays = dict[str, np.ndarray]


def keep(name: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return what ``compute`` returns, from the cache if possible; ``name`` must identify all that it depends on.

    Of several processes that want the same, one computes it while the others wait. Where nothing can be kept (a full or
    read-only disk, no home folder), it is computed every time.
    """
    try:
        folder = cache_folder() / "corpora"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{name}.lock")
        lock.acquire()
    except (RuntimeError, OSError):
        return compute()
    with lock:
        entry = folder / name
        if not _is_intact(entry):
            arrays = compute()
            try:
                _write(entry, arrays)
            except OSError:
                return arrays
            _delete_oldest(folder)
        with contextlib.suppress(OSError):  # the folder may be read-only
            os.utime(entry / LIST)
        return {path.stem: _map(path) for path in entry.glob("*.npy")}


def _is_intact(entry: Path) -> bool:
    listed = read_json_object(entry / LIST)
    try:
        return bool(listed) and hash_files(entry / name for name in listed) == list(listed.values())
    except OSError:
        return False


def _write(entry: Path, arrays: Arrays) -> None:
    """Write an entry; OSError if there is no room, or not the same again afterwards."""
    if shutil.disk_usage(entry.parent).free < 2 * sum(array.nbytes for array in arrays.values()):
        raise OSError("a cache must not fill the disk")
    temporary = entry.with_name(f".{entry.name}")
    for old in (temporary, entry):
        shutil.rmtree(old, ignore_errors=True)
    temporary.mkdir()
    try:
        for name, array in arrays.items():
            with open(temporary / f"{name}.npy", "wb") as file:
                np.save(file, array, allow_pickle=False)
                os.fsync(file.fileno())
        paths = sorted(temporary.iterdir())
        listed = dict(zip([path.name for path in paths], hash_files(paths), strict=True))
        write_atomically(temporary / LIST, json.dumps(listed, indent=1) + "\n")
        os.replace(temporary, entry)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _map(path: Path) -> np.ndarray:
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if 0 in shape:  # nothing to map
            return np.zeros(shape, dtype)
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _delete_oldest(folder: Path) -> None:
    """Delete the entries least recently used, but for the newest, until the others are within ``MAX_BYTES``."""
    total = 0
    for entry in sorted(folder.glob("*/"), key=_last_use, reverse=True):
        before, total = total, total + sum(path.stat().st_size for path in entry.iterdir())
        if before and total > MAX_BYTES:
            shutil.rmtree(entry, ignore_errors=True)
            entry.with_name(f"{entry.name}.lock").unlink(missing_ok=True)


def _last_use(entry: Path) -> float:
    try:
        return (entry / LIST).stat().st_mtime
    except OSError:
        return 0.0
