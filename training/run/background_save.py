"""Saves in the background: training goes on while its checkpoint is written."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import jax

from common.errors import UserError
from training.devices.distributed import wait_for_all
from training.progress import Progress
from training.run.checkpoint import begin_save
from training.run.retention import delete_old_checkpoints
from training.state import TrainState


class Saves:
    """A run's saves, one at a time. A checkpoint is promised, and found by a restart, from ``wait`` on."""

    def __init__(self, run_dir: Path, keep: int) -> None:
        self._run_dir, self._keep = run_dir, keep
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="save")
        self._going_on: Future[None] | None = None

    def start(self, state: TrainState, progress: Progress) -> None:
        """Wait for the save before this one, and begin to save the state, which may be donated after this."""
        self.wait()
        commit = begin_save(self._run_dir, state, progress.to_notes())

        def write() -> None:
            commit()
            delete_old_checkpoints(self._run_dir, self._keep, progress.best_step)

        self._going_on = self._thread.submit(write)

    def check(self) -> None:
        """UserError if the save going on has failed; does not wait."""
        if self._going_on is not None and self._going_on.done():
            self._going_on.result()

    def wait(self) -> None:
        """Return once every process has written what was saved; UserError if that failed."""
        if self._going_on is None:
            return
        going_on, self._going_on = self._going_on, None
        going_on.result()
        wait_for_all("the checkpoint")


@contextmanager
def saving(run_dir: Path, keep: int) -> Iterator[Saves]:
    """Inside, a run is saved. At the end, and after an error, the save that goes on is first completed.

    With several processes, an error does not wait: the others, without which no save is complete, may be gone.
    """
    saves = Saves(run_dir, keep)
    try:
        yield saves
    except BaseException:
        if jax.process_count() == 1:
            with suppress(UserError):  # told is what came first
                saves.wait()
        raise
    saves.wait()
