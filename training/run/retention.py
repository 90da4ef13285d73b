"""Which checkpoints a run has, which one to use, and which to delete.

Orbax's ``CheckpointManager`` is not used: without digests, it would count a damaged checkpoint among the newest, or
delete it, and a BLEU of NaN scrambles its ranking.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from common.errors import UserError, write_note
from evaluation.report import Checkpoint
from training.devices.distributed import is_first
from training.run.layout import CHECKPOINTS, average_path, checkpoint_path, is_step_name
from training.run.manifest import is_intact, read_manifest
from training.run.write_trees import is_own


def examine(run_dir: Path) -> tuple[list[int], list[int]]:
    """The steps with an intact checkpoint and those with a damaged one, each oldest first."""
    steps: tuple[list[int], list[int]] = [], []
    for step in _list_steps(run_dir):
        steps[not is_intact(checkpoint_path(run_dir, step))].append(step)
    return steps


def has_checkpoints(run_dir: Path) -> bool:
    """Whether a run has any checkpoint, good or damaged."""
    return bool(_list_steps(run_dir))


def good_steps(run_dir: Path) -> list[int]:
    return examine(run_dir)[0]


def damaged_steps(run_dir: Path) -> list[int]:
    return examine(run_dir)[1]


def find_newest_checkpoint(run_dir: Path) -> int | None:
    """The step of the newest intact checkpoint, or None; warns if some are damaged, UserError if all are."""
    good, damaged = examine(run_dir)
    if damaged:
        problem = f"{Path(run_dir) / 'checkpoints'} has damaged checkpoints: {', '.join(map(str, damaged))}"
        if not good:
            raise UserError(f"{problem}, and no good one; nothing was deleted. Move them away to start the run anew")
        write_note(f"warning: {problem}; continuing from step {good[-1]}")
    return good[-1] if good else None


def delete_old_checkpoints(run_dir: Path, keep: int, best: int) -> None:
    """Delete intact checkpoints other than the newest ``keep`` and step ``best``; done by the first process only.

    A damaged checkpoint stays and does not count, since the disk may be at fault; one that contains other files also
    stays. Each checkpoint is renamed first, so that a half-deleted one is never mistaken for a good one.
    """
    if not is_first():
        return
    newer = 0  # intact checkpoints
    for step in reversed(_list_steps(run_dir)):
        directory = checkpoint_path(run_dir, step)
        if (newer >= keep and step == best) or not is_intact(directory):
            continue
        newer += 1
        if newer > keep and is_own(directory):
            hidden = directory.with_name(f".{step}")
            with suppress(OSError):  # the next save removes leftovers; a folder of that name may be someone else's
                os.replace(directory, hidden)
                shutil.rmtree(hidden)


def find_for_inference(run_dir: Path, which: str) -> Path:
    """The intact checkpoint that ``which`` names: best, latest, a step, or an average. UserError if there is none."""
    good, damaged = examine(run_dir)
    averages = {path.name: path for path in average_path(run_dir, "").glob("[A-Za-z]*")}
    is_step = which in ("best", "latest") or which.isdigit()
    if not good and (is_step or not averages):
        if damaged:
            raise UserError(f"all checkpoints of {run_dir} are damaged: {', '.join(map(str, damaged))}")
        raise UserError(f"{run_dir} has no complete checkpoint yet: train it with train.py first")
    if which in ("best", "latest") and max(damaged, default=0) > good[-1]:  # it may be the best, too
        newest = f"the newest checkpoint of {run_dir}, step {damaged[-1]}, is damaged"
        raise UserError(f"{newest}; decoding.checkpoint={good[-1]} takes step {good[-1]}")
    if is_step:
        return checkpoint_path(run_dir, _find_step(run_dir, which, good))
    if which not in averages:
        known = [*(["best", "latest"] if good else []), *map(str, good), *sorted(averages)]
        raise UserError(f"{run_dir} has no average {which}; there are {', '.join(known)}")
    if not is_intact(averages[which]):
        raise UserError(f"{averages[which]} is damaged: make it again with scripts/average_checkpoints.py")
    return averages[which]


def recorded_checkpoint(run_dir: Path, which: str) -> Checkpoint | None:
    """The checkpoint that ``which`` names now, from its manifest, without reading its files; None if it is gone."""
    with suppress(OSError, ValueError, LookupError, UserError):
        is_step = which in ("best", "latest") or which.isdigit()
        step = _find_step(run_dir, which, _list_steps(run_dir)) if is_step else 0
        manifest = read_manifest(checkpoint_path(run_dir, step) if is_step else average_path(run_dir, which))
        return Checkpoint(manifest.step, manifest.digest)
    return None


def _find_step(run_dir: Path, which: str, good: list[int]) -> int:
    if which == "latest":
        return good[-1]
    if which == "best":
        best = read_manifest(checkpoint_path(run_dir, good[-1])).notes.get("best_step")
        if best not in [0, *good]:  # 0 before the first evaluation
            problem = f"the best checkpoint of {run_dir}, step {best}, is damaged or gone"
            raise UserError(f"{problem}; decoding.checkpoint=latest takes step {good[-1]}")
        return int(best or good[-1])
    if which not in map(str, good):
        raise UserError(f"{run_dir} has no checkpoint at step {which}; there are {', '.join(map(str, good))}")
    return int(which)


def _list_steps(run_dir: Path) -> list[int]:
    return sorted(int(path.name) for path in (Path(run_dir) / CHECKPOINTS).glob("[0-9]*") if is_step_name(path.name))
