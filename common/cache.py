"""Expensive results, kept in the user's cache folder and memory-mapped from there at later starts.

An entry is a folder of arrays and one JSON file. The last file written lists the SHA-256 of every other file: an entry
that has changed since it was written is not used.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common.errors import UserError
from common.files import cache_folder, hash_folder, holds, read_json_object, remove_leftovers, write_folder
from common.lock import acquire

MAX_BYTES = 32 * 2**30  # for all entries together; beyond this, the least recently used are deleted
LIST, FACTS = "sha256.json", "facts.json"
Arrays = dict[str, np.ndarray]


class Entry(NamedTuple):
    """Arrays by name, and everything else as JSON."""

    arrays: Arrays
    facts: dict[str, Any]


def keep(name: str, compute: Callable[[], Entry]) -> Entry:
    """Return the result of ``compute``, from the cache if possible; ``name`` must identify everything it depends on.

    If several processes want the same entry, one computes it while the others wait. If nothing can be written (a full
    or read-only disk, no home folder), the entry is computed every time.
    """
    try:
        path = entry_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = acquire(path.with_name(f"{name}.lock"), wait=True)
    except (RuntimeError, OSError):
        return compute()
    with lock:
        if not _is_intact(path):
            entry = compute()
            try:
                _write(path, entry)
            except (UserError, OSError):
                return entry
            with contextlib.suppress(OSError):  # another process may delete the same entries
                _delete_oldest(path.parent)
        with contextlib.suppress(OSError):  # the folder may be read-only
            os.utime(path / LIST)
        arrays = {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in path.glob("*.npy")}
        return Entry({name: np.asarray(array) for name, array in arrays.items()}, read_json_object(path / FACTS))


def peek(name: str) -> dict[str, Any]:
    """The facts of an entry, unverified; empty if there is none."""
    try:
        return read_json_object(entry_path(name) / FACTS)
    except RuntimeError:
        return {}


def entry_path(name: str) -> Path:
    """The folder of an entry. RuntimeError if there is no home folder."""
    return cache_folder() / "corpora" / name


def _is_intact(path: Path) -> bool:
    listed = read_json_object(path / LIST)
    return bool(listed) and holds(path, listed)


def _write(path: Path, entry: Entry) -> None:
    """Write an entry. UserError or OSError if it cannot be written, or would take over half of the free disk space."""
    if shutil.disk_usage(path.parent).free < 2 * sum(array.nbytes for array in entry.arrays.values()):
        raise OSError("a cache must not fill the disk")
    remove_leftovers(path.parent)
    shutil.rmtree(path, ignore_errors=True)
    with write_folder(path) as folder:
        for name, array in entry.arrays.items():
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
        (folder / FACTS).write_text(json.dumps(entry.facts) + "\n", encoding="utf-8")
        (folder / LIST).write_text(json.dumps(hash_folder(folder), indent=1) + "\n", encoding="utf-8")


def _delete_oldest(folder: Path) -> None:
    """Delete the least recently used entries, but never the newest, until the rest fit into ``MAX_BYTES``."""
    total = 0
    entries = [path.parent for path in folder.glob(f"*/{LIST}")]  # other folders may not be ours
    for entry in sorted(entries, key=lambda entry: os.path.getmtime(entry / LIST), reverse=True):
        before, total = total, total + sum(path.stat().st_size for path in entry.iterdir())
        if before and total > MAX_BYTES:
            shutil.rmtree(entry, ignore_errors=True)
            entry.with_name(f"{entry.name}.lock").unlink(missing_ok=True)
