"""With training.reproducible=any_mesh: one digest on every mesh, the usual step's numbers, and what is refused."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from common.errors import UserError
from configs.load import load_config
from experiment.open_run import find_devices
from model.transformer import build
from tests.training.devices.layouts import MODEL, TRAINING, VOCAB, make_batch
from training.devices.any_mesh import check_any_mesh, make_programs
from training.state import init_state

ANY_MESH = replace(TRAINING, reproducible="any_mesh", accumulation=1)
WITHOUT_DROPOUT = replace(MODEL, dropout=0.0)


@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(["1 1 1", "2 2 1"], marks=pytest.mark.slow),
        pytest.param(["1 1 1", "2 1 1", "2 2 1", "1 8 1"], marks=pytest.mark.nightly),
    ],
)
def test_meshes_of_one_to_eight_devices_give_one_digest_also_where_another_mesh_began(shapes, call, tmp_path):
    """All techniques that draw or that sum over a matrix: dropout, word dropout, LayerDrop, SimCut, Muon, averages."""
    digests = json.loads(call("tests/training/devices/layouts.py", tmp_path, *shapes).stdout)
    assert len(digests) == 2 * len(shapes) and len(set(digests.values())) == 1, digests


def test_a_step_is_the_usual_one_up_to_rounding_where_nothing_is_drawn():
    graphdef, batch, seen = build(WITHOUT_DROPOUT, VOCAB), make_batch(0), []
    for config in (ANY_MESH, replace(ANY_MESH, reproducible="same_mesh")):
        programs, state = make_programs(graphdef, config), init_state(WITHOUT_DROPOUT, config, VOCAB)
        gradients, loss = programs.gradients(state.params, batch, state.step), programs.loss_step(state.params, batch)
        state, report = programs.train_step(state, batch)
        seen.append((gradients, loss, state.sums, report))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6), *seen)


def test_the_second_step_compiles_nothing():
    compiled, programs = [], make_programs(build(MODEL, VOCAB), ANY_MESH)

    def listen(event: str, duration_secs: float, **facts: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(facts["fun_name"])

    state, _ = programs.train_step(init_state(MODEL, ANY_MESH, VOCAB), make_batch(0))
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        programs.train_step(state, make_batch(1))
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled == []


@pytest.mark.parametrize(
    ("shape", "rows", "message"),
    [
        ((1, 1, 2), 8, r"mesh.tensor must be 1, since devices that share a row add in another order, not 2"),
        ((3, 1, 1), 24, r"mesh.data × mesh.fsdp must be 1, 2, 4 or 8, not 3"),
        ((8, 2, 1), 16, r"mesh.data × mesh.fsdp must be 1, 2, 4 or 8, not 16"),
        ((1, 2, 1), 12, r"data.batch_rows must be a multiple of 8, not 12"),
    ],
)
def test_where_it_cannot_be_it_is_refused_in_one_line(shape, rows, message):
    with pytest.raises(UserError, match=f"^training.reproducible=any_mesh: {message}$"):
        check_any_mesh(ANY_MESH, jax.sharding.AbstractMesh(shape, ("data", "fsdp", "tensor")), rows)


def test_before_a_run_begins_and_with_slices_by_the_config(small_experiment):
    config = load_config(small_experiment, ["training.reproducible=any_mesh"])
    with pytest.raises(UserError, match=r"data.batch_rows must be a multiple of 8, not 2"):
        find_devices(config)
    with pytest.raises(UserError, match=r"set training.accumulation=1"):
        load_config(small_experiment, ["training.reproducible=any_mesh", "training.accumulation=2"])
