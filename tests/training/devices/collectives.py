"""Compile a training step for a mesh of eight simulated devices, and print the bytes of its collectives as JSON.

test_collectives.py runs this in processes of their own, because JAX fixes its devices once: python collectives.py 8 1 1
"""

import json
import math
import re
import sys
from collections import Counter
from typing import Any

import jax

from model.config import ModelConfig
from model.transformer import build
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import Devices, abstract_state, make_mesh
from training.step import make_train_step

MODEL = ModelConfig(d_model=64, num_heads=8, head_dim=8, encoder_layers=2, decoder_layers=1, d_ff=128, dropout=0.0)
TRAINING = TrainingConfig(steps=10, ema_decay=0.9, clip_norm=0.0)
VOCAB, ROWS, LENGTH = 512, 16, 24
COLLECTIVE = re.compile(r"= (.*) (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\(")


def main(data: str, fsdp: str, tensor: str) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    mesh = make_mesh(MeshConfig(int(data), int(fsdp), int(tensor)))
    state = abstract_state(mesh, MODEL, TRAINING, VOCAB)
    step: Any = make_train_step(build(MODEL, VOCAB), TRAINING, state)
    text = step.lower(state, Devices(mesh, ROWS).batch_shapes(LENGTH, LENGTH)).compile().as_text()
    sizes: Counter[str] = Counter()
    for result, kind in COLLECTIVE.findall(text):
        shapes = [map(int, filter(None, axes.split(","))) for axes in re.findall(r"\[(.*?)\]", result)]
        sizes[kind] += sum(4 * math.prod(shape) for shape in shapes)
    params = [leaf.shape for leaf in jax.tree.leaves(state.params)]
    print(json.dumps({"sizes": sizes, "params": params}))


if __name__ == "__main__":
    main(*sys.argv[1:])
