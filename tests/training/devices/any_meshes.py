"""Train with training.reproducible=any_mesh on several meshes, also on from where another began: print digests as JSON.

test_any_mesh.py runs this in a process of its own, because JAX fixes its devices once: python any_meshes.py FOLDER
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from tests.run_digest import digest_tree
from tests.saved import save
from tests.training.devices.layouts import FOR_SMALL_DATA, Training, make_batch

LAYOUTS = {"one": (1, 1, 1), "data 2": (2, 1, 1), "both 4": (2, 2, 1), "fsdp 8": (1, 8, 1)}
MODEL, TRAINING = FOR_SMALL_DATA[0], replace(FOR_SMALL_DATA[1], reproducible="any_mesh", accumulation=1)


def digest(training: Training) -> str:
    """Of all that the updates left, and of a loss without dropout."""
    loss = training.programs.loss_step(training.state.inference_params, training.devices.place(make_batch(0)))
    return digest_tree(jax.tree.map(np.asarray, (training.state, loss)))


def main(folder: Path) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_compilation_cache", False)  # what XLA loads from it hangs here in a collective
    trainings = {name: Training(shape, MODEL, TRAINING) for name, shape in LAYOUTS.items()}
    found: dict[str, str] = {}
    for name, training in trainings.items():
        training.take(0, 2)
        if not found:
            save(folder, training.state, {})
        training.take(2, 4)
        found[name] = digest(training)
        training.restored(folder, 2).take(2, 4)
        found[f"{name}, continued"] = digest(training)
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
