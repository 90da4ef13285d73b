"""Train the same small model on meshes of simulated devices, and print losses, bytes and digests as JSON.

test_mesh.py and test_any_mesh.py run this in a process of its own, because JAX fixes its devices once: python
layouts.py FOLDER, or python layouts.py FOLDER SHAPE… with training.reproducible=any_mesh on meshes of these shapes.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import build
from tests.run_digest import digest_tree
from tests.saved import save
from training.config import MeshConfig, TrainingConfig
from training.devices.any_mesh import make_programs
from training.devices.mesh import Devices, abstract_state, compile_initial_state, make_mesh
from training.run.checkpoint import restore

# Eight devices on two busy cores wait for each other; XLA ends a process that hangs after 60 seconds.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_collective_call_terminate_timeout_seconds=60"
VOCAB, ROWS, STEPS = 64, 16, 20
MODEL = ModelConfig(d_model=16, num_heads=4, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=32, dropout=0.1)
TRAINING = TrainingConfig(steps=100, warmup_steps=5, learning_rate=1e-2, ema_decay=0.9, accumulation=2)
FOR_SMALL_DATA = (
    replace(MODEL, activation_dropout=0.1, source_word_dropout=0.1, target_word_dropout=0.1, decoder_layer_drop=0.3),
    replace(TRAINING, consistency="simcut", cutoff=0.2, optimizer="muon"),
)
LAYOUTS = ("1 1 1", "8 1 1", "1 8 1", "2 2 2")


def make_batch(step: int) -> Batch:
    generator = np.random.default_rng(step % 2)  # two batches alternate, so that the loss falls
    shape = ROWS, 12
    lengths = generator.integers(6, 13, (ROWS, 1))
    segments = np.where(np.arange(12) < lengths, 1 + (np.arange(12) >= lengths // 2), 0)  # two sentences a row
    positions = np.where(np.arange(12) < lengths // 2, np.arange(12), np.arange(12) - lengths // 2)
    tokens = [generator.integers(4, VOCAB, shape) for _ in range(3)]
    arrays = tokens[0], segments, positions, tokens[1], tokens[2], segments, positions
    return Batch(*(array.astype(np.int32) for array in arrays))


class Training:
    """A state on a mesh, and its updates."""

    def __init__(self, shape: str, model: ModelConfig = MODEL, training: TrainingConfig = TRAINING) -> None:
        data, fsdp, tensor = map(int, shape.split())
        self.devices = Devices(make_mesh(MeshConfig(data, fsdp, tensor)), ROWS)
        self.like = abstract_state(self.devices.mesh, model, training, VOCAB)
        self.programs = make_programs(build(model, VOCAB), training, self.like)
        self.step: Any = self.programs.train_step
        self.state = compile_initial_state(self.like, model, training, VOCAB)()

    def take(self, first: int, last: int) -> list[float]:
        losses = []
        for step in range(first, last):
            self.state, report = self.step(self.state, self.devices.place(make_batch(step)))
            losses.append(float(report.loss))
        return losses

    def digest(self) -> str:
        """Of all that the third and fourth update leave, and of a loss without dropout."""
        self.take(2, 4)
        loss = self.programs.loss_step(self.state.inference_params, self.devices.place(make_batch(0)))
        return digest_tree(jax.tree.map(np.asarray, (self.state, loss)))

    def restored(self, folder: Path, step: int) -> "Training":
        self.state = restore(folder, step, self.like)
        return self

    def bytes_of_a_device(self) -> int:
        return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(self.state))


def report(folder: Path) -> dict[str, Any]:
    """Of the usual step."""
    trainings = {shape: Training(shape) for shape in LAYOUTS}
    losses = {name: training.take(0, STEPS) for name, training in trainings.items()}
    compiled = {name: training.step._cache_size() for name, training in trainings.items()}

    small_data = {shape: Training(shape, *FOR_SMALL_DATA).take(0, STEPS) for shape in ("1 1 1", "2 2 2")}

    written = digest_tree(trainings["2 2 2"].state)
    save(folder, trainings["2 2 2"].state, {})
    after = trainings["2 2 2"].take(STEPS, STEPS + 2)
    restored = {name: training.restored(folder, STEPS) for name, training in trainings.items()}
    return {
        "losses": losses,
        "small_data": small_data,
        "compiled": compiled,
        "bytes": {name: training.bytes_of_a_device() for name, training in trainings.items()},
        "written": written,
        "restored": {name: digest_tree(training.state) for name, training in restored.items()},
        "after": after,
        "continued": {name: training.take(STEPS, STEPS + 2) for name, training in restored.items()},
        "compiled_at_the_end": {name: training.step._cache_size() for name, training in trainings.items()},
    }


def digests(folder: Path, shapes: list[str]) -> dict[str, str]:
    """With training.reproducible=any_mesh: of each mesh, and of each that goes on where the first began."""
    model, config = FOR_SMALL_DATA[0], replace(FOR_SMALL_DATA[1], reproducible="any_mesh", accumulation=1)
    trainings = {shape: Training(shape, model, config) for shape in shapes}
    found: dict[str, str] = {}
    for shape, training in trainings.items():
        training.take(0, 2)
        if not found:
            save(folder, training.state, {})
        found[shape] = training.digest()
        found[f"{shape}, continued"] = training.restored(folder, 2).digest()
    return found


def main(folder: Path, *shapes: str) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_compilation_cache", False)  # what XLA loads from it hangs here in a collective
    print(json.dumps(digests(folder, list(shapes)) if shapes else report(folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
