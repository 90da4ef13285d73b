"""Which checkpoints a run has, which one to use, and which to delete.

Retention is not left to Orbax's ``CheckpointManager``: it knows no digests, so a damaged checkpoint would count as one
of the newest, or be deleted, and a BLEU of NaN scrambles its ranking.
"""

import os
import shutil
from pathlib import Path

from common.errors import UserError, write_note
from training.devices.distributed import is_first
from training.run.manifest import is_intact, read_manifest


def checkpoint_path(run_dir: Path, step: int) -> Path:
    return Path(run_dir) / "checkpoints" / str(step)


def average_path(run_dir: Path, name: str) -> Path:
    return Path(run_dir) / "averages" / name


def examine(run_dir: Path) -> tuple[list[int], list[int]]:
    """The steps with an intact checkpoint, and those with a damaged one, oldest first."""
    steps: tuple[list[int], list[int]] = [], []
    for step in _list_steps(run_dir):
        steps[not is_intact(checkpoint_path(run_dir, step))].append(step)
    return steps


def good_steps(run_dir: Path) -> list[int]:
    return examine(run_dir)[0]


def damaged_steps(run_dir: Path) -> list[int]:
    return examine(run_dir)[1]


def find_newest_checkpoint(run_dir: Path) -> int | None:
    """The step of the newest intact checkpoint or None, with a warning if some are damaged. UserError if all are."""
    good, damaged = examine(run_dir)
    if damaged:
        problem = f"{Path(run_dir) / 'checkpoints'} has damaged checkpoints: {', '.join(map(str, damaged))}"
        if not good:
            raise UserError(f"{problem}, and no good one; nothing was deleted. Move them away to start the run anew")
        write_note(f"warning: {problem}; continuing from step {good[-1]}")
    return good[-1] if good else None


def delete_old_checkpoints(run_dir: Path, keep: int, best: int) -> None:
    """Delete intact checkpoints other than the newest ``keep`` and that of step ``best``; the first process does.

    A damaged checkpoint stays and does not count, since the disk may be at fault. Each checkpoint is renamed first, so
    that a half-deleted one is never mistaken for a good one.
    """
    if not is_first():
        return
    newer = 0  # intact checkpoints
    for step in reversed(_list_steps(run_dir)):
        directory = checkpoint_path(run_dir, step)
        if (newer >= keep and step == best) or not is_intact(directory):
            continue
        newer += 1
        if newer > keep:
            hidden = directory.with_name(f".{step}")
            os.replace(directory, hidden)
            shutil.rmtree(hidden, ignore_errors=True)  # the next save removes what is left


def find_for_inference(run_dir: Path, which: str) -> Path:
    """The intact checkpoint that ``which`` names: best, latest, a step, or an average's name. UserError if none."""
    if which in ("best", "latest") or which.isdigit():
        return checkpoint_path(run_dir, _find_step(run_dir, which))
    return _find_average(run_dir, which)


def _find_average(run_dir: Path, name: str) -> Path:
    directories = {path.name: path for path in average_path(run_dir, "").glob("[A-Za-z]*")}
    if name not in directories:
        steps = good_steps(run_dir) if directories else _require_good_steps(run_dir)
        known = [*(["best", "latest"] if steps else []), *map(str, steps), *sorted(directories)]
        raise UserError(f"{run_dir} has no average {name}; there are {', '.join(known)}")
    if not is_intact(directories[name]):
        raise UserError(f"{directories[name]} is damaged: make it again with scripts/average_checkpoints.py")
    return directories[name]


def _find_step(run_dir: Path, which: str) -> int:
    steps = _require_good_steps(run_dir)
    if which == "latest":
        return steps[-1]
    if which == "best":
        notes = read_manifest(checkpoint_path(run_dir, steps[-1])).notes
        best = notes["best_step"] or steps[-1]  # 0 before the first evaluation
        if best not in steps:
            raise UserError(
                f"the best checkpoint of {run_dir}, step {best}, is damaged or gone; "
                f"decoding.checkpoint=latest takes step {steps[-1]}"
            )
        return int(best)
    if which not in map(str, steps):
        raise UserError(f"{run_dir} has no checkpoint at step {which}; there are {', '.join(map(str, steps))}")
    return int(which)


def _require_good_steps(run_dir: Path) -> list[int]:
    good, damaged = examine(run_dir)
    if damaged and not good:
        raise UserError(f"all checkpoints of {run_dir} are damaged: {', '.join(map(str, damaged))}")
    if not good:
        raise UserError(f"{run_dir} has no complete checkpoint yet: train it with train.py first")
    return good


def _list_steps(run_dir: Path) -> list[int]:
    return sorted(int(path.name) for path in Path(run_dir).glob("checkpoints/[0-9]*") if path.name.isdigit())
