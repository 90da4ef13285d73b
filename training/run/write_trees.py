"""Write a directory of Orbax trees whole or not at all: under another name, flushed to disk, then renamed.

Several processes write together, and training goes on while they do. The manifest is the last file written.
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

for name in ("absl", "asyncio"):  # where Orbax logs every step of a save, and each error many times
    logging.getLogger(name).setLevel(logging.CRITICAL)
# of a save that fails because its folder vanishes: Orbax drops the writes that it had not begun
warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)

# what a save, complete or not, leaves in its folder
OWN = re.compile(r"(params|averaged|rest)(\.orbax-.*)?|manifest\.json|\.manifest\.json\.\d+\.tmp")
CENTURY = 100 * 365 * 86_400  # seconds
SLACK = 2**20  # bytes to leave free besides the arrays, for metadata and for what else a run writes
Commit = Callable[[], None]


def begin_writing(final: Path, trees: dict[str, Any], step: int, notes: dict[str, Any]) -> Commit:
    """Begin to write trees and a manifest to the directory ``final``, which is replaced if it exists.

    The trees may change, or be donated, as soon as this returns. The rest is in the function returned, which may be
    called in any thread: it waits until Orbax's threads have written the trees, and the first process writes the
    manifest and renames. Every process of the run must call both: each writes what its devices hold. They raise
    UserError, and leave earlier checkpoints as they were, if the disk is full, gone or read-only, or if a folder of
    somebody else's is in the way. What an interrupted save of that name left is removed.
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
    """Whether a path is a folder with nothing in it but what a save left there."""
    return folder.is_dir() and not folder.is_symlink() and all(OWN.fullmatch(path.name) for path in folder.iterdir())


@contextmanager
def _explaining(final: Path, temporary: Path) -> Iterator[None]:
    """Inside, an error leaves nothing half-written and becomes one line."""
    try:
        yield
    except Exception as error:  # valid trees fail only because of the disk, which Orbax reports by many exceptions
        shutil.rmtree(temporary, ignore_errors=True)
        if is_lost_process(error):
            raise
        problem = f"cannot write the checkpoint {final} (earlier ones are as they were): {_explain(error)}"
        raise UserError(problem) from error


def _check_disk_space(final: Path, trees: dict[str, Any]) -> None:
    # Checked beforehand because on a disk that fills up during a save Orbax's threads print many tracebacks.
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(trees)) * 11 // 10 + SLACK
    if shutil.disk_usage(final.parent).free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, it needs {needed / 1e6:.1f} MB")


def _begin_trees(directory: Path, trees: dict[str, Any]) -> ExitStack:
    """Copy the trees from their devices, and have threads write them; closing the result waits for all of these."""
    import orbax.checkpoint as ocp

    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _print_unless_closed
    # Orbax takes the wall clock for how long a save took, and one that is set right is no reason to give up.
    options = ocp.AsyncOptions(timeout_secs=CENTURY, create_directories_asynchronously=False)
    with ExitStack() as writing:
        for name, tree in trees.items():
            checkpointer = writing.enter_context(ocp.StandardCheckpointer(async_options=options))
            checkpointer.save(directory.resolve() / name, tree)
        return writing.pop_all()


def _print_unless_closed(unraisable: Any) -> None:
    """Print an error, unless it is of Orbax's threads that go on when a save has failed and closed their event loop."""
    if str(unraisable.exc_value) != "Event loop is closed":
        sys.__unraisablehook__(unraisable)


def _explain(error: Exception) -> str:
    # Orbax wraps the system's error in text of its own.
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
