"""Checkpoints: written whole or not at all, proven by digests, free of the devices that wrote them.

A checkpoint is a directory ``checkpoints/STEP`` with the parameters, their average where there is one, and the rest
of the training state, each saved by Orbax, and a manifest with the SHA-256 of every file and of itself. It is written
under another name and renamed when all of it is on the disk: a directory with the final name, an intact manifest and
every file as it was written is good. A checkpoint that is not good is never restored and never deleted.
Averages of several checkpoints (training/run/averaging.py) are such directories too, ``averages/NAME`` beside them.
"""

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError, in_words
from common.files import write_atomically
from model.config import ModelConfig
from model.transformer import Params, init_params
from training.devices.distributed import is_first, is_lost_process, wait_for_all
from training.state import TrainState

for name in ("absl", "asyncio"):  # by which Orbax tells every step of a save, and each fault many times
    logging.getLogger(name).setLevel(logging.CRITICAL)

MANIFEST = "manifest.json"
SLACK = 2**20  # bytes that are free beside a checkpoint's, for its metadata and for what else a run writes
ATTEMPTS = 3  # at reading a checkpoint that a training removes meanwhile, since it has a newer one


def save(run_dir: Path, state: TrainState, notes: dict[str, Any]) -> Path:
    """Write the state at its step with ``notes`` (JSON) in the manifest; return the new directory.

    Of several processes, which all come here, each writes what its devices hold, and the first one the rest.
    An interrupted save leaves only a directory that starts with a dot, which the next save removes. Raises UserError
    where it cannot be written, with the earlier checkpoints as they were.
    """
    root = _root(run_dir)
    if is_first():
        for leftover in root.glob(".*"):
            shutil.rmtree(leftover, ignore_errors=True)
    return _write(root / str(int(state.step)), _parts(state), {"step": int(state.step), "notes": notes})


def note(run_dir: Path, step: int, notes: dict[str, Any]) -> None:
    """Put other notes into the manifest of a good checkpoint, at once or not at all; the first process does."""
    if not is_first():
        return
    directory = _root(run_dir) / str(step)
    write_atomically(directory / MANIFEST, _sealed(_read_manifest(directory) | {"notes": notes}))


def restore(run_dir: Path, step: int, like: TrainState) -> TrainState:
    """The state saved at ``step``, whatever wrote it; ``like`` gives shapes, types and, if it has them, shardings.

    Raises UserError if the checkpoint holds another model's or optimizer's state.
    """
    directory = _root(run_dir) / str(step)
    parts = {name: _restore_tree(directory / name, tree) for name, tree in _parts(like).items()}
    rest, averaged = parts["rest"], parts.get("averaged")
    return TrainState(rest["step"], parts["params"], rest["opt_state"], averaged, rest["sums"], rest["skipped"])


def save_average(run_dir: Path, name: str, params: Params, step: int, notes: dict[str, Any]) -> Path:
    """Keep ``params``, an average up to ``step``, as ``averages/NAME``; an average of that name is replaced.

    An interrupted save leaves only directories that start with a dot, which the next save of that name removes: others
    may be somebody's who is at work.
    """
    final = _averages(run_dir) / name
    for leftover in (_temporary(final), _hidden(final)):
        if leftover.exists():
            shutil.rmtree(leftover)
    return _write(final, {"params": params}, {"step": step, "notes": notes})


def load_for_inference(run_dir: Path, which: str, config: ModelConfig, vocab_size: int) -> tuple[Params, int]:
    """Parameters to translate with (averaged ones where the run averages) and their step.

    ``which`` is best, latest, a step or an average's name; the step of an average is the newest one in it. Raises
    UserError where there is no such good checkpoint or average.
    """
    for attempt in range(ATTEMPTS):
        directory = _find(run_dir, which)
        try:
            step = _read_manifest(directory)["step"]
            return _inference_params(directory, config, vocab_size), step
        except Exception:
            if directory.exists() or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError  # the last attempt has returned or raised


def inference_params(run_dir: Path, step: int, config: ModelConfig, vocab_size: int) -> Params:
    """The same parameters of a checkpoint that is known to be good."""
    return _inference_params(_root(run_dir) / str(step), config, vocab_size)


def good_steps(run_dir: Path) -> list[int]:
    """Steps with a complete checkpoint, oldest first; one whose files differ from its manifest is left out."""
    return [step for step, is_good in examine(run_dir).items() if is_good]


def damaged_steps(run_dir: Path) -> list[int]:
    """Steps whose checkpoint is not what was written."""
    return [step for step, is_good in examine(run_dir).items() if not is_good]


def examine(run_dir: Path) -> dict[int, bool]:
    """Every step that has a checkpoint, oldest first, and whether all of it is what was written."""
    return {step: _is_good(_root(run_dir) / str(step)) for step in _steps(run_dir)}


def find_newest(run_dir: Path) -> int | None:
    """The step of the newest good checkpoint, with a warning if others are damaged; None if there is none at all.

    Raises UserError if there are damaged ones only.
    """
    checkpoints = examine(run_dir)
    good = [step for step, is_good in checkpoints.items() if is_good]
    if damaged := [step for step, is_good in checkpoints.items() if not is_good]:
        told = f"{_root(run_dir)} has damaged checkpoints: {', '.join(map(str, damaged))}"
        if not good:
            raise UserError(f"{told}, and no good one; nothing was deleted. Move them away to start the run anew")
        print(f"warning: {told}; continuing from step {good[-1]}", file=sys.stderr)
    return good[-1] if good else None


def notes(run_dir: Path, step: int) -> dict[str, Any]:
    """What was noted last at a good checkpoint."""
    return _read_manifest(_root(run_dir) / str(step))["notes"]


def keep_only(run_dir: Path, newest: int, best: int) -> None:
    """Delete the good checkpoints but the ``newest`` ones and that of the step ``best``; the first process does.

    One that cannot be read stays, since the disk may be at fault. Each is renamed first, so that a half-deleted one is
    never taken for good.
    """
    if not is_first():
        return
    good = good_steps(run_dir)
    for step in set(good[:-newest]) - {best}:
        directory = _root(run_dir) / str(step)
        hidden = directory.with_name(f".{step}")
        os.replace(directory, hidden)
        shutil.rmtree(hidden, ignore_errors=True)  # what is left goes with the next save


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
    checkpoints = examine(run_dir)
    steps = [step for step, is_good in checkpoints.items() if is_good]
    if checkpoints and not steps:
        raise UserError(f"all checkpoints of {run_dir} are damaged: {', '.join(map(str, checkpoints))}")
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
    if which not in map(str, steps):
        raise UserError(f"{run_dir} has no checkpoint at step {which}; there are {', '.join(map(str, steps))}")
    return int(which)


def _parts(state: TrainState) -> dict[str, Any]:
    rest = {name: getattr(state, name) for name in ("step", "opt_state", "sums", "skipped")}
    parts = {"params": state.params, "rest": rest}
    return parts if state.averaged is None else parts | {"averaged": state.averaged}


def _inference_params(directory: Path, config: ModelConfig, vocab_size: int) -> Params:
    like = jax.eval_shape(lambda: init_params(config, vocab_size, jax.random.key(0)))
    averaged = directory / "averaged"
    return _restore_tree(averaged if averaged.exists() else directory / "params", like)


def _restore_tree(directory: Path, like: Any) -> Any:
    # Without a sharding of its own, Orbax would look for the devices that wrote the checkpoint.
    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    target = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding or here), like
    )
    import orbax.checkpoint as ocp  # here and below, because a start can do without the third of a second it takes

    with ocp.StandardCheckpointer() as checkpointer:
        _refuse_other_shapes(directory, checkpointer.metadata(directory.resolve()).item_metadata.tree, like)
        return checkpointer.restore(directory.resolve(), target)


def _refuse_other_shapes(directory: Path, saved: Any, like: Any) -> None:
    there, wanted = _shapes(saved), _shapes(like)
    for name in sorted(there.keys() | wanted.keys()):
        if there.get(name) != wanted.get(name):
            raise UserError(
                f"{directory} is of another model or optimizer than the run's config: {name} is "
                f"{there.get(name, 'missing')} in the checkpoint, and {wanted.get(name, 'nothing')} by the config"
            )


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf.shape for path, leaf in leaves}


def _write(final: Path, parts: dict[str, Any], facts: dict[str, Any]) -> Path:
    temporary, run_dir = _temporary(final), final.parent.parent
    try:
        folder = _identity(run_dir)
        if is_first():
            temporary.mkdir(parents=True, exist_ok=True)
            _refuse_full_disk(final, parts)
        wait_for_all("a folder for the checkpoint")
        _save_trees(temporary, parts)
        if is_first():
            _seal(temporary, final, facts, folder)
        wait_for_all("the manifest")
    except Exception as error:  # the trees are sound: what fails is the disk, in Orbax as one of many exceptions
        shutil.rmtree(temporary, ignore_errors=True)
        if is_lost_process(error):
            raise
        told = f"cannot write the checkpoint {final} (earlier ones are as they were): {_in_words(error)}"
        raise UserError(told) from error
    return final


def _seal(temporary: Path, final: Path, facts: dict[str, Any], folder: tuple[int, int]) -> None:
    (temporary / MANIFEST).write_text(_sealed(facts | {"sha256": _digests(temporary)}))
    _flush(temporary)
    if _identity(final.parent.parent) != folder:
        raise OSError(errno.ENOENT, f"{final.parent.parent} was moved or unmounted")
    os.replace(temporary, final) if not final.exists() else _swap(temporary, final)
    _flush_directory(final.parent)


def _identity(folder: Path) -> tuple[int, int]:
    # Orbax makes the folders that it lacks: where a disk was unmounted, it would write below the mount point.
    found = folder.stat()
    return found.st_dev, found.st_ino


def _refuse_full_disk(final: Path, parts: dict[str, Any]) -> None:
    # Asked before, because a disk that is full in the middle makes Orbax's threads print many tracebacks.
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(parts)) * 11 // 10 + SLACK
    if shutil.disk_usage(final.parent).free < needed:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}, it needs {needed / 1e6:.1f} MB")


def _in_words(error: Exception) -> str:
    """What the system said, which Orbax wraps in lines of its own."""
    code = re.search(r"os_error_code='(\d+)'", str(error))
    if code:
        error = OSError(int(code[1]), os.strerror(int(code[1])))
    return in_words(error) if isinstance(error, OSError) else str(error).partition("\n")[0]


def _save_trees(directory: Path, parts: dict[str, Any]) -> None:
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        for name, tree in parts.items():
            checkpointer.save(directory.resolve() / name, tree)
            checkpointer.wait_until_finished()


def _sealed(facts: dict[str, Any]) -> str:
    """A manifest's text, with a digest of its own."""
    return json.dumps(facts | {"check": _check(facts)}, indent=1)


def _read_manifest(directory: Path) -> dict[str, Any]:
    """The facts of a manifest; ValueError if a single bit of it is not as it was written."""
    text = (directory / MANIFEST).read_text(encoding="utf-8")
    facts = json.loads(text)
    if not isinstance(facts, dict) or facts.pop("check", None) != _check(facts) or _sealed(facts) != text:
        raise ValueError(f"{directory / MANIFEST} is damaged")
    return facts


def _check(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


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
        listed = _read_manifest(directory)["sha256"]
        return listed == {name: _sha256(directory / name) for name in listed}
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
