"""Save and restore checkpoints: written atomically, verified by digests, independent of the devices.

A checkpoint is a directory ``checkpoints/STEP`` with up to three trees saved by Orbax (``params``, ``averaged`` if the
run averages, and ``rest``) and a manifest. It is written under a name that starts with a dot, flushed to disk, and
renamed. Averages of checkpoints (training/run/averaging.py) are directories of the same form: ``averages/NAME``.
"""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from common.errors import UserError, explain_lack_of_memory
from common.files import write_atomically
from common.text import in_brief
from model.config import ModelConfig
from model.transformer import Params, structure
from training.devices.distributed import is_first, is_lost_process
from training.run.layout import checkpoint_path
from training.run.manifest import MANIFEST, Manifest, read_manifest
from training.run.retention import find_for_inference
from training.run.write_trees import Commit, begin_writing, is_own
from training.state import Sums, TrainState

ATTEMPTS = 3  # at loading a checkpoint, which a run in progress may replace with a newer one


def begin_save(run_dir: Path, state: TrainState, notes: dict[str, Any]) -> Commit:
    """``begin_writing`` for the state at its step, with ``notes`` (JSON); removes leftovers of interrupted saves."""
    step = int(state.step)
    final = checkpoint_path(run_dir, step)
    if is_first():
        for leftover in filter(is_own, final.parent.glob(".[0-9]*")):
            shutil.rmtree(leftover, ignore_errors=True)
    return begin_writing(final, _split_state(state), step, notes)


def read_notes(run_dir: Path, step: int) -> dict[str, Any]:
    return read_manifest(checkpoint_path(run_dir, step)).notes


def update_notes(run_dir: Path, step: int, notes: dict[str, Any]) -> None:
    """Replace the notes of an intact checkpoint atomically; done by the first process only."""
    directory = checkpoint_path(run_dir, step)
    if is_first():
        write_atomically(directory / MANIFEST, replace(read_manifest(directory), notes=notes).to_json())


def restore(run_dir: Path, step: int, like: TrainState) -> TrainState:
    """Restore the state saved at ``step``, sharded like ``like``; UserError if its model or optimizer is different.

    A sum of ``Sums`` that is missing in a checkpoint of an older version starts at zero.
    """
    directory = checkpoint_path(run_dir, step)
    parts = {name: _restore_tree(directory / name, tree) for name, tree in _split_as_saved(directory, like).items()}
    rest, averaged = parts["rest"], parts.get("averaged")
    saved = rest["sums"]  # each missing sum gets its own zero: a step must not be given the same array twice
    where = _sharding(like.sums.steps)
    sums = Sums(*(saved[name] if name in saved else jnp.zeros((), device=where) for name in Sums._fields))
    return TrainState(rest["step"], parts["params"], rest["opt_state"], averaged, sums, rest["skipped"])


def check_restorable(run_dir: Path, step: int, like: TrainState) -> None:
    """UserError if the checkpoint at ``step`` has a different model or optimizer than ``like``; reads no arrays."""
    directory = checkpoint_path(run_dir, step)
    for name, tree in _split_as_saved(directory, like).items():
        _check_shapes(directory / name, tree)


def load_for_inference(run_dir: Path, which: str, config: ModelConfig, vocab_size: int) -> tuple[Params, Manifest]:
    """Load parameters to translate with (averaged ones if the run averages) and the manifest of their checkpoint.

    ``which`` is best, latest, a step, or the name of an average (its step is its newest). UserError if none is intact.
    """
    for attempt in range(ATTEMPTS):
        directory = find_for_inference(run_dir, which)
        try:
            manifest = read_manifest(directory)
            return load_params(directory, config, vocab_size), manifest
        except Exception:
            if directory.exists() or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def load_params(directory: Path, config: ModelConfig, vocab_size: int) -> Params:
    """Load the parameters to translate with from an intact checkpoint."""
    like = nnx.to_pure_dict(structure(replace(config, kernel="definition"), vocab_size)[1])  # as a search builds it
    averaged = directory / "averaged"
    return _restore_tree(averaged if averaged.exists() else directory / "params", like)


def _split_state(state: TrainState) -> dict[str, Any]:
    rest = {name: getattr(state, name) for name in ("step", "opt_state", "sums", "skipped")}
    parts = {"params": state.params, "rest": rest}
    return parts if state.averaged is None else parts | {"averaged": state.averaged}


def _split_as_saved(directory: Path, like: TrainState) -> dict[str, Any]:
    """The parts of ``like``, with only those sums that the checkpoint has."""
    names = [name.removeprefix("sums.") for name in _saved_shapes(directory / "rest") if name.startswith("sums.")]
    parts = _split_state(like)
    return parts | {"rest": parts["rest"] | {"sums": dict.fromkeys(names, like.sums.steps)}}


def _sharding(leaf: Any) -> Any:
    # For a leaf without a sharding, Orbax would look for the devices that wrote the checkpoint.
    return leaf.sharding or jax.sharding.SingleDeviceSharding(jax.local_devices()[0])


def _restore_tree(directory: Path, like: Any) -> Any:
    _check_shapes(directory, like)
    target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_sharding(leaf)), like)
    with _reading(directory) as checkpointer:
        return checkpointer.restore(directory.resolve(), target)


@contextlib.contextmanager
def _reading(directory: Path) -> Iterator[Any]:
    """Orbax's reader of a tree. Damage makes Orbax raise all kinds of exceptions; here they become UserError."""
    import orbax.checkpoint as ocp  # takes a third of a second, so imported only if there is a checkpoint

    try:
        with explain_lack_of_memory(f"{directory} may be damaged"), ocp.StandardCheckpointer() as checkpointer:
            yield checkpointer
    except UserError:
        raise
    except Exception as error:
        if is_lost_process(error):
            raise
        reason = in_brief(f"{type(error).__name__}: {error}")
        raise UserError(f"{directory} is damaged, or of another program ({reason}): move it away") from error


def _saved_shapes(directory: Path) -> dict[str, tuple[int, ...]]:
    with _reading(directory) as checkpointer:
        return list_shapes(checkpointer.metadata(directory.resolve()).item_metadata.tree)


def _check_shapes(directory: Path, like: Any) -> None:
    found, expected = _saved_shapes(directory), list_shapes(like)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            shape, wanted = found.get(name, "missing"), expected.get(name, "nothing")
            problem = f"{directory} has a different model or optimizer than the run's config"
            raise UserError(f"{problem}: {name} is {shape} in the checkpoint, and {wanted} by the config")


def list_shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of a tree's leaves by dotted name."""
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf.shape for path, leaf in leaves}
