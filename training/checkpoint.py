"""Checkpoints: written whole or not at all, proven by digests, free of the devices that wrote them.

A checkpoint is a directory ``checkpoints/STEP`` with the parameters, their average where there is one, and the rest
of the training state, each saved by Orbax, and a manifest with the SHA-256 of every file. It is written under another
name and renamed when all of it is on the disk: a directory with the final name and an intact manifest is good.
"""

import hashlib
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from data.errors import UserError
from model.config import ModelConfig
from model.transformer import Params, init_params
from training.state import TrainState

logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax tells every step of a save

MANIFEST = "manifest.json"


def save(run_dir: Path, state: TrainState, notes: dict[str, Any]) -> Path:
    """Write the state at its step with ``notes`` (JSON) in the manifest; return the new directory.

    An interrupted save leaves only a directory that starts with a dot, which the next save removes.
    """
    root = _root(run_dir)
    root.mkdir(parents=True, exist_ok=True)
    for leftover in root.glob(".*"):
        shutil.rmtree(leftover)
    final = root / str(int(state.step))
    temporary = root / f".{final.name}"
    with ocp.StandardCheckpointer() as checkpointer:
        for name, tree in _parts(state).items():
            checkpointer.save(temporary.resolve() / name, tree)
            checkpointer.wait_until_finished()
    manifest = {"step": int(state.step), "notes": notes, "sha256": _digests(temporary)}
    (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))
    _flush(temporary)
    os.replace(temporary, final) if not final.exists() else _swap(temporary, final)
    _flush_directory(root)
    return final


def restore(run_dir: Path, step: int, like: TrainState) -> TrainState:
    """The state saved at ``step``, on this process's device whatever wrote it; ``like`` gives shapes and types."""
    directory = _root(run_dir) / str(step)
    parts = {name: _restore_tree(directory / name, tree) for name, tree in _parts(like).items()}
    rest = parts["rest"]
    return TrainState(rest["step"], parts["params"], rest["opt_state"], parts.get("averaged"), rest["sums"])


def load_for_inference(run_dir: Path, which: str, config: ModelConfig, vocab_size: int) -> tuple[Params, int]:
    """Parameters to translate with (averaged ones where the run averages) and their step.

    ``which`` is best, latest or a step. Raises UserError where there is no such good checkpoint.
    """
    step = _find(run_dir, which)
    directory = _root(run_dir) / str(step)
    like = jax.eval_shape(lambda: init_params(config, vocab_size, jax.random.key(0)))
    averaged = directory / "averaged"
    return _restore_tree(averaged if averaged.exists() else directory / "params", like), step


def good_steps(run_dir: Path) -> list[int]:
    """Steps with a complete checkpoint, oldest first; one whose files differ from its manifest is left out."""
    return [step for step in _steps(run_dir) if _is_good(_root(run_dir) / str(step))]


def damaged_steps(run_dir: Path) -> list[int]:
    """Steps whose checkpoint is not what was written."""
    good = good_steps(run_dir)
    return [step for step in _steps(run_dir) if step not in good]


def notes(run_dir: Path, step: int) -> dict[str, Any]:
    """What was noted when the checkpoint was saved."""
    return json.loads((_root(run_dir) / str(step) / MANIFEST).read_text())["notes"]


def remove_all_but(run_dir: Path, kept: set[int]) -> None:
    """Delete other checkpoints: renamed first, so that a half-deleted one is never taken for good."""
    for step in set(_steps(run_dir)) - kept:
        directory = _root(run_dir) / str(step)
        hidden = directory.with_name(f".{step}")
        os.replace(directory, hidden)
        shutil.rmtree(hidden)


def _find(run_dir: Path, which: str) -> int:
    steps = good_steps(run_dir)
    if not steps:
        raise UserError(f"{run_dir} has no complete checkpoint yet: train it with train.py first")
    if which == "latest":
        return steps[-1]
    if which == "best":
        best = notes(run_dir, steps[-1])["best_step"] or steps[-1]  # 0 before the first evaluation
        if best not in steps:
            raise UserError(
                f"the best checkpoint of {run_dir}, step {best}, is damaged or gone; "
                f"decoding.checkpoint=latest takes step {steps[-1]}"
            )
        return int(best)
    if int(which) not in steps:
        raise UserError(f"{run_dir} has no checkpoint at step {which}; there are {', '.join(map(str, steps))}")
    return int(which)


def _parts(state: TrainState) -> dict[str, Any]:
    parts = {"params": state.params, "rest": {"step": state.step, "opt_state": state.opt_state, "sums": state.sums}}
    return parts if state.averaged is None else parts | {"averaged": state.averaged}


def _restore_tree(directory: Path, like: Any) -> Any:
    # Without a sharding of its own, Orbax would look for the devices that wrote the checkpoint.
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here), like)
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(directory.resolve(), target)


def _root(run_dir: Path) -> Path:
    return Path(run_dir) / "checkpoints"


def _steps(run_dir: Path) -> list[int]:
    return sorted(int(path.name) for path in _root(run_dir).glob("[0-9]*") if path.name.isdigit())


def _is_good(directory: Path) -> bool:
    try:
        return json.loads((directory / MANIFEST).read_text())["sha256"] == _digests(directory)
    except (OSError, ValueError, KeyError):
        return False


def _digests(directory: Path) -> dict[str, str]:
    files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(directory)): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(directory: Path) -> None:
    for path in directory.rglob("*"):
        _flush_directory(path)
    _flush_directory(directory)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _swap(temporary: Path, final: Path) -> None:
    hidden = final.with_name(f".{final.name}-old")
    os.replace(final, hidden)
    os.replace(temporary, final)
    shutil.rmtree(hidden)
