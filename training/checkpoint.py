"""Checkpoints: written whole or not at all, proven by digests, free of the devices that wrote them.

A checkpoint is a directory ``checkpoints/STEP`` with the parameters, their average where there is one, and the rest
of the training state, each saved by Orbax, and a manifest with the SHA-256 of every file. It is written under another
name and renamed when all of it is on the disk: a directory with the final name and an intact manifest is good.
Averages of several checkpoints (training/averaging.py) are such directories too, ``averages/NAME`` beside them.
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
    return _write(root / str(int(state.step)), _parts(state), {"step": int(state.step), "notes": notes})


def restore(run_dir: Path, step: int, like: TrainState) -> TrainState:
    """The state saved at ``step``, on this process's device whatever wrote it; ``like`` gives shapes and types."""
    directory = _root(run_dir) / str(step)
    parts = {name: _restore_tree(directory / name, tree) for name, tree in _parts(like).items()}
    rest = parts["rest"]
    return TrainState(rest["step"], parts["params"], rest["opt_state"], parts.get("averaged"), rest["sums"])


def save_average(run_dir: Path, name: str, params: Params, step: int, notes: dict[str, Any]) -> Path:
    """Keep ``params``, an average up to ``step``, as ``averages/NAME``; an average of that name is replaced.

    An interrupted save leaves only directories that start with a dot, which the next save of that name removes: others
    may be somebody's who is at work.
    """
    final = _averages(run_dir) / name
    final.parent.mkdir(parents=True, exist_ok=True)
    for leftover in (_temporary(final), _hidden(final)):
        if leftover.exists():
            shutil.rmtree(leftover)
    return _write(final, {"params": params}, {"step": step, "notes": notes})


def load_for_inference(run_dir: Path, which: str, config: ModelConfig, vocab_size: int) -> tuple[Params, int]:
    """Parameters to translate with (averaged ones where the run averages) and their step.

    ``which`` is best, latest, a step or an average's name; the step of an average is the newest one in it. Raises
    UserError where there is no such good checkpoint or average.
    """
    directory = _find(run_dir, which)
    return _inference_params(directory, config, vocab_size), json.loads((directory / MANIFEST).read_text())["step"]


def inference_params(run_dir: Path, step: int, config: ModelConfig, vocab_size: int) -> Params:
    """The same parameters of a checkpoint that is known to be good."""
    return _inference_params(_root(run_dir) / str(step), config, vocab_size)


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


def _find(run_dir: Path, which: str) -> Path:
    if which in ("best", "latest") or which.isdigit():
        return _root(run_dir) / str(_find_step(run_dir, which))
    return _find_average(run_dir, which)


def _find_average(run_dir: Path, name: str) -> Path:
    directories = {directory.name: directory for directory in _averages(run_dir).glob("[A-Za-z]*")}
    if name not in directories:
        steps = good_steps(run_dir) if directories else _some_good_steps(run_dir)
        there = [*(["best", "latest"] if steps else []), *map(str, steps), *sorted(directories)]
        raise UserError(f"{run_dir} has no average {name}; there are {', '.join(there)}")
    if not _is_good(directories[name]):
        raise UserError(f"{directories[name]} is damaged: make it again with scripts/average_checkpoints.py")
    return directories[name]


def _some_good_steps(run_dir: Path) -> list[int]:
    steps = good_steps(run_dir)
    if not steps:
        raise UserError(f"{run_dir} has no complete checkpoint yet: train it with train.py first")
    return steps


def _find_step(run_dir: Path, which: str) -> int:
    steps = _some_good_steps(run_dir)
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


def _inference_params(directory: Path, config: ModelConfig, vocab_size: int) -> Params:
    like = jax.eval_shape(lambda: init_params(config, vocab_size, jax.random.key(0)))
    averaged = directory / "averaged"
    return _restore_tree(averaged if averaged.exists() else directory / "params", like)


def _restore_tree(directory: Path, like: Any) -> Any:
    # Without a sharding of its own, Orbax would look for the devices that wrote the checkpoint.
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here), like)
    with ocp.StandardCheckpointer() as checkpointer:
        return checkpointer.restore(directory.resolve(), target)


def _write(final: Path, parts: dict[str, Any], facts: dict[str, Any]) -> Path:
    temporary = _temporary(final)
    with ocp.StandardCheckpointer() as checkpointer:
        for name, tree in parts.items():
            checkpointer.save(temporary.resolve() / name, tree)
            checkpointer.wait_until_finished()
    manifest = facts | {"sha256": _digests(temporary)}
    (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1))
    _flush(temporary)
    os.replace(temporary, final) if not final.exists() else _swap(temporary, final)
    _flush_directory(final.parent)
    return final


def _root(run_dir: Path) -> Path:
    return Path(run_dir) / "checkpoints"


def _averages(run_dir: Path) -> Path:
    return Path(run_dir) / "averages"


def _temporary(final: Path) -> Path:
    return final.with_name(f".{final.name}")


def _hidden(final: Path) -> Path:
    return final.with_name(f".{final.name}-old")


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
    hidden = _hidden(final)
    os.replace(final, hidden)
    os.replace(temporary, final)
    shutil.rmtree(hidden)
