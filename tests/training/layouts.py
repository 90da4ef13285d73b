"""Trains the same small model on meshes of simulated devices; prints what became of it as JSON, for test_mesh.py.

A program of its own, because JAX counts its devices once in a process: python layouts.py FOLDER.
"""

import json
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from data.batches.packing import Batch
from model.config import ModelConfig
from model.transformer import build
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import Devices, abstract_state, compile_initial_state, make_mesh
from training.replay.run_digest import digest_tree
from training.run.checkpoint import restore, save
from training.step import make_train_step

VOCAB, ROWS, STEPS = 64, 16, 20
MODEL = ModelConfig(d_model=16, num_heads=4, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=32, dropout=0.1)
TRAINING = TrainingConfig(steps=100, warmup_steps=5, learning_rate=1e-2, ema_decay=0.9, accumulation=2)
LAYOUTS = {"1 1 1": (1, 1, 1), "8 1 1": (8, 1, 1), "1 8 1": (1, 8, 1), "2 2 2": (2, 2, 2)}


def make_batch(step: int) -> Batch:
    generator = np.random.default_rng(step % 2)  # seen again and again, so that something is learned
    shape = ROWS, 12
    lengths = generator.integers(6, 13, (ROWS, 1))
    segments = np.where(np.arange(12) < lengths, 1 + (np.arange(12) >= lengths // 2), 0)  # two sentences a row
    positions = np.where(np.arange(12) < lengths // 2, np.arange(12), np.arange(12) - lengths // 2)
    tokens = [generator.integers(4, VOCAB, shape) for _ in range(3)]
    arrays = tokens[0], segments, positions, tokens[1], tokens[2], segments, positions
    return Batch(*(array.astype(np.int32) for array in arrays))


class Trained:
    """A state on a mesh, and the losses of its updates."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.devices = Devices(make_mesh(MeshConfig(*shape)), ROWS)
        self.like = abstract_state(self.devices.mesh, MODEL, TRAINING, VOCAB)
        self.step: Any = make_train_step(build(MODEL, VOCAB), TRAINING, self.like)
        self.state = compile_initial_state(self.like, MODEL, TRAINING, VOCAB)()

    def take(self, first: int, last: int) -> list[float]:
        losses = []
        for step in range(first, last):
            self.state, reading = self.step(self.state, self.devices.place(make_batch(step)))
            losses.append(float(reading.loss))
        return losses

    def restored(self, folder: Path, step: int) -> "Trained":
        self.state = restore(folder, step, self.like)
        return self

    def bytes_of_a_device(self) -> int:
        return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(self.state))


def main(folder: Path) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    trained = {name: Trained(shape) for name, shape in LAYOUTS.items()}
    losses = {name: each.take(0, STEPS) for name, each in trained.items()}
    compiled = {name: each.step._cache_size() for name, each in trained.items()}

    written = digest_tree(trained["2 2 2"].state)
    save(folder, trained["2 2 2"].state, {})
    after = trained["2 2 2"].take(STEPS, STEPS + 2)
    restored = {name: each.restored(folder, STEPS) for name, each in trained.items()}
    report = {
        "losses": losses,
        "compiled": compiled,
        "bytes": {name: each.bytes_of_a_device() for name, each in trained.items()},
        "written": written,
        "restored": {name: digest_tree(each.state) for name, each in restored.items()},
        "after": after,
        "continued": {name: each.take(STEPS, STEPS + 2) for name, each in restored.items()},
        "compiled_at_the_end": {name: each.step._cache_size() for name, each in trained.items()},
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
