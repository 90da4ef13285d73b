"""Train one small model on several meshes with training.reproducible=any_mesh, and print digests as JSON.

test_any_mesh.py runs this in a process of its own, because JAX fixes its devices once: python any_meshes.py FOLDER
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from model.transformer import build
from tests.training.devices.layouts import FOR_SMALL_DATA, ROWS, VOCAB, make_batch
from training.config import MeshConfig
from training.devices.any_mesh import make_programs
from training.devices.mesh import Devices, abstract_state, compile_initial_state, make_mesh
from training.replay.run_digest import digest_tree
from training.run.checkpoint import restore, save

LAYOUTS = {"one": (1, 1, 1), "data 2": (2, 1, 1), "both 4": (2, 2, 1), "fsdp 8": (1, 8, 1)}
MODEL, TRAINING = FOR_SMALL_DATA[0], replace(FOR_SMALL_DATA[1], reproducible="any_mesh", accumulation=1)
STEPS = 4


class Training:
    """A state on a mesh, and its updates."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.devices = Devices(make_mesh(MeshConfig(*shape)), ROWS)
        self.like = abstract_state(self.devices.mesh, MODEL, TRAINING, VOCAB)
        self.programs = make_programs(build(MODEL, VOCAB), TRAINING, self.like)
        self.state = compile_initial_state(self.like, MODEL, TRAINING, VOCAB)()

    def take(self, first: int, last: int) -> str:
        """The digest of all that the steps leave, and of a loss without dropout."""
        for step in range(first, last):
            batch = self.devices.place(make_batch(step))
            self.state, report = self.programs.train_step(self.state, batch)
        loss = self.programs.loss_step(self.state.inference_params, batch)
        return digest_tree(jax.tree.map(np.asarray, (self.state, report, loss)))


def main(folder: Path) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_compilation_cache", False)  # what XLA loads from it hangs here in a collective
    trainings = {name: Training(shape) for name, shape in LAYOUTS.items()}
    trainings["data 2"].take(0, 2)
    save(folder, trainings["data 2"].state, {})
    found = {}
    for name, training in trainings.items():
        training.state = restore(folder, 2, training.like)
        found[f"{name}, continued"] = training.take(2, STEPS)
        training.state = compile_initial_state(training.like, MODEL, TRAINING, VOCAB)()
        found[name] = training.take(0, STEPS)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
