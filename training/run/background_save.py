"""Background saves: training continues while its checkpoint is written."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import jax

from common.errors import UserError
from training.devices.distributed import wait_for_all
from training.progress import Progress
from training.run.checkpoint import begin_save
from training.run.retention import delete_old_checkpoints
from training.run.write_trees import Commit
from training.state import TrainState


class Saves:
    """A run's saves, one at a time. After ``wait`` or at the end of the context, a restart finds the checkpoint."""

    def __init__(self, run_dir: Path, keep: int) -> None:
        self._run_dir, self._keep = run_dir, keep
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="save")
        self._under_way: Future[None] | None = None

    def start(self, state: TrainState, progress: Progress) -> None:
        """Wait for the previous save, then start saving the state, which may be donated as soon as this returns."""
        self.wait()
        commit = begin_save(self._run_dir, state, progress.to_notes())
        self._under_way = self._thread.submit(self._complete, commit, progress.best_step)

    def _complete(self, commit: Commit, best_step: int) -> None:
        commit()
        delete_old_checkpoints(self._run_dir, self._keep, best_step)

    def check(self) -> None:
        """UserError if the current save has failed; does not wait."""
        if self._under_way is not None and self._under_way.done():
            self._under_way.result()

    def wait(self) -> None:
        """Return once every process has written its part of the save; UserError if that failed."""
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()
            wait_for_all("the checkpoint")

    def __enter__(self) -> "Saves":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Complete the current save; not after an error with several processes, as the others may be gone."""
        if error is None:
            self.wait()
        elif jax.process_count() == 1:
            with suppress(UserError):  # the first error is reported
                self.wait()
