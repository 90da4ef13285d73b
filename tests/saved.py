"""Checkpoints that are saved without training going on beside."""

from pathlib import Path
from typing import Any

from training.devices.distributed import wait_for_all
from training.run.checkpoint import begin_save
from training.run.layout import checkpoint_path
from training.state import TrainState


def save(run_dir: Path, state: TrainState, notes: dict[str, Any]) -> Path:
    """The new checkpoint's directory."""
    begin_save(run_dir, state, notes)()
    wait_for_all("the checkpoint")
    return checkpoint_path(run_dir, int(state.step))
