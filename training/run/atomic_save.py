"""Write a directory of Orbax trees whole or not at all: under another name, flushed to disk, then renamed."""

import errno
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError, explain_os_error
from training.devices.distributed import is_first, is_lost_process, wait_for_all
from training.run.manifest import MANIFEST, Manifest, hash_files

for name in ("absl", "asyncio"):  # where Orbax logs every step of a save, and each error many times
    logging.getLogger(name).setLevel(logging.CRITICAL)

SLACK = 2**20  # bytes to leave free besides the arrays, for metadata and for what else a run writes


def write_trees(final: Path, trees: dict[str, Any], step: int, notes: dict[str, Any]) -> Path:
    """Write the trees and a manifest to the directory ``final``, whole or not at all; return it.

    Every process of the run must call this. A directory of that name is replaced. Raises UserError if the disk is full,
    gone or read-only.
    """
    temporary, run_dir = temporary_path(final), final.parent.parent
    try:
        folder = _identify(run_dir)
        if is_first():
            temporary.mkdir(parents=True, exist_ok=True)
            _check_disk_space(final, trees)
        wait_for_all("a folder for the checkpoint")
        _save_trees(temporary, trees)
        if is_first():
            (temporary / MANIFEST).write_text(Manifest(step, notes, hash_files(temporary)).to_json())
            _flush(temporary)
            if _identify(run_dir) != folder:
                raise OSError(errno.ENOENT, f"{run_dir} was moved or unmounted")
            _rename(temporary, final)
        wait_for_all("the manifest")
    except Exception as error:  # valid trees fail only because of the disk, which Orbax reports by many exceptions
        shutil.rmtree(temporary, ignore_errors=True)
        if is_lost_process(error):
            raise
        problem = f"cannot write the checkpoint {final} (earlier ones are as they were): {_explain(error)}"
        raise UserError(problem) from error
    return final


def _identify(folder: Path) -> tuple[int, int]:
    # Orbax creates missing parents: after an unmount it would write below the mount point.
    found = folder.stat()
    return found.st_dev, found.st_ino


def _check_disk_space(final: Path, trees: dict[str, Any]) -> None:
    # Checked beforehand because on a disk that fills up during a save Orbax's threads print many tracebacks.
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(trees)) * 11 // 10 + SLACK
    if shutil.disk_usage(final.parent).free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, it needs {needed / 1e6:.1f} MB")


def _save_trees(directory: Path, trees: dict[str, Any]) -> None:
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        for name, tree in trees.items():
            checkpointer.save(directory.resolve() / name, tree)
            checkpointer.wait_until_finished()


def _explain(error: Exception) -> str:
    # Orbax wraps the system's error in text of its own.
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if code:
        error = OSError(int(code[1]), os.strerror(int(code[1])))
    return explain_os_error(error) if isinstance(error, OSError) else str(error).partition("\n")[0]


def _flush(directory: Path) -> None:
    for path in (*directory.rglob("*"), directory):
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(temporary: Path, final: Path) -> None:
    replaced = replaced_path(final)
    is_replacement = final.exists()
    if is_replacement:
        os.replace(final, replaced)
    os.replace(temporary, final)
    if is_replacement:
        shutil.rmtree(replaced)
    _sync(final.parent)


def temporary_path(final: Path) -> Path:
    """Where a directory is written before it is renamed."""
    return final.with_name(f".{final.name}")


def replaced_path(final: Path) -> Path:
    """Where a directory waits for its deletion while another takes its place."""
    return final.with_name(f".{final.name}-old")
