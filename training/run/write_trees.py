"""Write a directory of Orbax trees atomically: under another name, flushed to disk, then renamed.

Several processes write together, and training continues meanwhile. The manifest is the last file written.
"""

import errno
import logging
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError, explain_os_error
from common.files import flush, flush_folder
from training.devices.distributed import is_first, is_lost_process, wait_for_all
from training.run.layout import refuse_to_leave
from training.run.manifest import write_manifest

for name in ("absl", "asyncio"):  # Orbax logs every step of a save there, and each error many times
    logging.getLogger(name).setLevel(logging.CRITICAL)
# from a save that fails because its folder vanishes: Orbax drops the writes that it has not started
warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)

# the files that a save, complete or not, leaves in its folder
OWN = re.compile(r"(params|averaged|rest)(\.orbax-.*)?|manifest\.json|\.manifest\.json\.\d+\.tmp")
CENTURY = 100 * 365 * 86_400  # seconds
SLACK = 2**20  # bytes to leave free besides the arrays, for metadata and the other files of a run
Commit = Callable[[], None]


def begin_writing(final: Path, trees: dict[str, Any], step: int, notes: dict[str, Any]) -> Commit:
    """Start writing trees and a manifest to the directory ``final``, replacing it if it exists.

    The trees may change, or be donated, as soon as this returns. The returned function does the rest and may be called
    in any thread: it waits until Orbax's threads have written the trees, then the first process writes the manifest
    and renames the directory. Every process of the run must call both: each writes what its devices hold. They raise
    UserError, and leave earlier checkpoints unchanged, if the disk is full, gone or read-only, or if someone else's
    folder is in the way. Leftovers of an interrupted save with the same name are removed.
    """
    temporary, replaced = final.with_name(f".{final.name}"), final.with_name(f".{final.name}-old")
    run_dir = final.parent.parent
    if is_first():
        refuse_to_leave(final.parent)
        for path in filter(os.path.lexists, (final, temporary, replaced)):
            if not is_own(path):
                raise UserError(f"{path} has other files than a checkpoint, and would be replaced: move it away")
    with _explaining(final, temporary):
        # Orbax creates missing parents: after an unmount it would write below the mount point.
        folder = run_dir.stat()
        if is_first():
            for leftover in filter(Path.exists, (temporary, replaced)):
                shutil.rmtree(leftover)
            temporary.mkdir(parents=True)
            _check_disk_space(final, trees)
        wait_for_all("a folder for the checkpoint")
        writing = _begin_trees(temporary, trees)

    def commit() -> None:
        with _explaining(final, temporary):
            writing.close()
            if is_first():
                write_manifest(temporary, step, notes)
                flush_folder(temporary)
                if not os.path.samestat(run_dir.stat(), folder):
                    raise OSError(errno.ENOENT, f"{run_dir} was moved or unmounted")
                _rename(temporary, final, replaced)

    return commit


def is_own(folder: Path) -> bool:
    """Whether a path is a folder that contains only files left by a save."""
    return folder.is_dir() and not folder.is_symlink() and all(OWN.fullmatch(path.name) for path in folder.iterdir())


@contextmanager
def _explaining(final: Path, temporary: Path) -> Iterator[None]:
    """In the block, an error leaves nothing half-written and becomes one line."""
    try:
        yield
    except Exception as error:  # valid trees fail only because of the disk; Orbax reports this with many exceptions
        shutil.rmtree(temporary, ignore_errors=True)
        if is_lost_process(error):
            raise
        problem = f"cannot write the checkpoint {final} (earlier ones are as they were): {_explain(error)}"
        raise UserError(problem) from error


def _check_disk_space(final: Path, trees: dict[str, Any]) -> None:
    # Checked beforehand because Orbax's threads print many tracebacks if the disk fills up during a save.
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(trees)) * 11 // 10 + SLACK
    if shutil.disk_usage(final.parent).free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, it needs {needed / 1e6:.1f} MB")


def _begin_trees(directory: Path, trees: dict[str, Any]) -> ExitStack:
    """Copy the trees from their devices and write them in threads; closing the result waits for all threads."""
    import orbax.checkpoint as ocp

    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _print_unless_closed
    # Orbax times a save by the wall clock, and an adjusted clock must not abort it.
    options = ocp.AsyncOptions(timeout_secs=CENTURY, create_directories_asynchronously=False)
    with ExitStack() as writing:
        for name, tree in trees.items():
            checkpointer = writing.enter_context(ocp.StandardCheckpointer(async_options=options))
            checkpointer.save(directory.resolve() / name, tree)
        return writing.pop_all()


def _print_unless_closed(unraisable: Any) -> None:
    """Print an error, unless it is from Orbax's threads after a failed save has closed their event loop."""
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def _explain(error: Exception) -> str:
    # Orbax wraps the system's error in its own text.
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if code:
        error = OSError(int(code[1]), os.strerror(int(code[1])))
    return explain_os_error(error) if isinstance(error, OSError) else str(error).partition("\n")[0]


def _rename(temporary: Path, final: Path, replaced: Path) -> None:
    if final.exists():
        os.replace(final, replaced)
    os.replace(temporary, final)
    if replaced.exists():
        shutil.rmtree(replaced)
    flush(final.parent)
