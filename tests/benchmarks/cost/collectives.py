"""Compile a training step for meshes of simulated devices, and print the bytes that it sends as JSON.

test_transfers.py runs this in a process of its own, because JAX fixes its devices once: python collectives.py 8·1·1 …
"""

import json
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from benchmarks.compiled.hlo import list_collectives, read_program
from benchmarks.cost.operations import StepCost
from model.config import ModelConfig
from model.sharding import ROWS
from model.transformer import build
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import abstract_state, make_mesh
from training.step import make_train_step

MODEL = ModelConfig(d_model=64, num_heads=8, head_dim=8, encoder_layers=2, decoder_layers=1, d_ff=128, dropout=0.0)
COST = StepCost(MODEL, vocab_size=512, rows=16, sources=24, targets=32)
TRAINING = TrainingConfig(steps=10, ema_decay=0.9, clip_norm=0.0)
MUON_OF_TWO_VIEWS = replace(TRAINING, optimizer="muon", consistency="r_drop")


def bytes_summed(text: str) -> dict[str, int]:
    """The bytes of the results of each kind of collective in a compiled program."""
    total: Counter[str] = Counter()
    for one in list_collectives(read_program(text)):
        total[one.kind] += one.bytes * (one.devices if one.kind == "all-gather" else 1)
    return total


def compile_step(cost: StepCost, training: TrainingConfig, shape: tuple[int, int, int]) -> Any:
    mesh = make_mesh(MeshConfig(*shape))
    state = abstract_state(mesh, cost.model, training, cost.vocab_size)
    rows = NamedSharding(mesh, PartitionSpec(ROWS))
    batch = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=rows), cost.batch())
    step: Any = make_train_step(build(cost.model, cost.vocab_size), training, state)
    return step.lower(state, batch).compile()


def main(names: list[str]) -> None:
    jax.config.update("jax_num_cpu_devices", 8)
    report = {}
    for name in names:
        shape, _, techniques = name.partition(" ")
        data, fsdp, tensor = map(int, shape.split("·"))
        step = compile_step(COST, MUON_OF_TWO_VIEWS if techniques else TRAINING, (data, fsdp, tensor))
        held = step.memory_analysis().argument_size_in_bytes
        report[name] = {"sent": bytes_summed(step.as_text()), "state": held}
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1:])
