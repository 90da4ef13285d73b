"""Contestants that train, and their report."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from benchmarks.training import PuenteSteps, Task, Usage, list_contestants, report_training
from common.errors import UserError
from configs.schema import RunConfig
from model.transformer import build
from tests.benchmarks.small import MODEL, RUNS_ON_CPU, STEP, TRAINING, measured, refused, results
from training.devices.any_mesh import make_programs
from training.state import init_state


def test_a_contestant_that_could_not_take_part_has_a_row_that_says_so():
    usage = Usage(1000, 2**20, compile_seconds=2.0, kernels=["xla"])
    bfloat16 = replace(STEP, model=replace(MODEL, matmul_dtype="bfloat16"))
    report = report_training(
        results(
            measured("puente", Task(STEP, TRAINING), {"step": 6.0}, usage),
            refused("puente cudnn", Task(STEP, TRAINING), "model.kernel=cudnn: no"),
            measured("marian", Task(STEP, TRAINING), {"step": 3.0}, Usage(900, None)),
            refused("puente", Task(replace(STEP, rows=2**20), TRAINING), "out of memory"),
            measured("puente-bfloat16", Task(bfloat16, TRAINING), {"step": 6.0}, usage),
            **{"jax": 1e9, "jax bfloat16": 1e8},
        )
    )
    table = report.table
    header = ["batch", "contestant", "ms a step", "tokens/s", "ratio", "GFLOP/s", "of rate", "compile s", "peak MiB"]
    assert table.header == header
    speed = STEP.flops() / 6e-3
    figures = ["6.00", "4,500", "0.50", f"{speed / 1e9:.3f}", f"{speed / 1e9:.0%}", "2.0", "1"]
    assert table.rows[0] == ["3 × 4 + 5", "puente", *figures]
    assert table.rows[1] == ["3 × 4 + 5", "puente cudnn", "refused", *[""] * 6]
    assert table.rows[2][7:] == ["", ""]
    assert table.rows[3] == ["1048576 × 4 + 5", "puente", "out of memory", *[""] * 6]
    assert table.rows[4][6] == f"{speed / 1e8:.0%}"  # of products with the same operands
    assert "; ratio to marian. MFLOP a token: " in table.note
    assert report.json["notes"] == ["puente cudnn: model.kernel=cudnn: no", "puente on 1048576 × 4 + 5: out of memory"]


def test_everyone_steps_on_every_batch():
    costs = [replace(STEP, rows=rows) for rows in (2, 4)]
    recipes = {"puente": RunConfig(model=MODEL, training=TRAINING)}
    contestants = list_contestants(recipes, costs, ["definition", "auto"], ("marian",))
    assert [who.name for who in contestants] == ["puente definition", "puente auto", "marian"] * 2
    assert [who.workload.cost.model.kernel for who in contestants[:2]] == ["definition", "auto"]
    assert [who.workload.cost.rows for who in contestants] == [2] * 3 + [4] * 3


@pytest.mark.slow
@RUNS_ON_CPU
@pytest.mark.parametrize("reproducible", ["same_mesh", "any_mesh"])
def test_steps_are_those_that_training_takes(reproducible):
    training, cost = replace(TRAINING, reproducible=reproducible), replace(STEP, rows=8)
    steps, expected = PuenteSteps(Task(cost, training)), init_state(MODEL, training, STEP.vocab_size)
    train_step = make_programs(build(MODEL, STEP.vocab_size), training).train_step
    for _ in range(2):  # as many as the contestant has taken to be ready
        expected, _ = train_step(expected, cost.batch())
    jax.tree.map(np.testing.assert_array_equal, steps.state, expected)
    if reproducible == "any_mesh":
        with pytest.raises(UserError, match=r"any_mesh: data.batch_rows must be a multiple of 8, not 3$"):
            PuenteSteps(Task(STEP, training))
