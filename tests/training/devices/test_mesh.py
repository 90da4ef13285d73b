"""Every mesh of eight simulated devices trains what one device trains, and reads what the others have written."""

import json
import signal
from dataclasses import replace

import jax
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from common.errors import UserError
from model.config import ModelConfig
from model.sharding import parameter_spec
from training.config import MeshConfig, TrainingConfig
from training.devices.mesh import abstract_state, check_divisible, make_mesh, shard_optimizer
from training.state import init_state

OTHERS = ["8 1 1", "1 8 1", "2 2 2"]
MODEL = ModelConfig(d_model=16, num_heads=4, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=32)


@pytest.fixture(scope="module")
def report(call, tmp_path_factory):
    """What tests/training/devices/layouts.py prints."""
    for _ in range(4):  # XLA's collectives of simulated devices may wait for each other, and XLA then aborts
        done = call("tests/training/devices/layouts.py", tmp_path_factory.mktemp("layouts"), code=None)
        if done.returncode != -signal.SIGABRT:
            break
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert b"Involuntary full rematerialization" not in done.stderr
    return json.loads(done.stdout)


@pytest.mark.nightly
@pytest.mark.parametrize("layout", OTHERS)
def test_losses_of_twenty_steps_are_those_of_one_device(report, layout):
    one = report["losses"]["1 1 1"]
    np.testing.assert_allclose(report["losses"][layout], one, atol=1e-5, rtol=0)
    assert one[-1] < one[0] - 0.05  # something was learned on the way


@pytest.mark.nightly
def test_so_are_those_with_all_techniques_for_small_corpora(report):
    """Consistency, word dropout, LayerDrop and Muon: what is dropped does not depend on the mesh.

    Muon's bfloat16 roundings then make other sums grow into differences; another mask changes the first by 0.01.
    """
    one = report["small_data"]["1 1 1"]
    np.testing.assert_allclose(report["small_data"]["2 2 2"][:3], one[:3], atol=1e-5, rtol=0)
    np.testing.assert_allclose(report["small_data"]["2 2 2"], one, atol=1e-3, rtol=0)
    assert one[-1] < one[0] - 0.05


@pytest.mark.nightly
@pytest.mark.parametrize("layout", ["1 1 1", *OTHERS])
def test_a_checkpoint_of_any_mesh_restores_on_every_other_bit_for_bit(report, layout):
    assert report["restored"][layout] == report["written"]
    np.testing.assert_allclose(report["continued"][layout], report["after"], atol=1e-5, rtol=0)


@pytest.mark.nightly
def test_one_compilation_a_mesh_also_after_restoring(report):
    assert set(report["compiled"].values()) == set(report["compiled_at_the_end"].values()) == {1}


@pytest.mark.nightly
def test_what_a_device_keeps_of_the_state(report):
    whole = report["bytes"]["1 1 1"]
    assert report["bytes"]["8 1 1"] == whole  # every device has all of it
    # Over fsdp all matrices are divided by 8, over tensor all but vectors of the width.
    params = jax.eval_shape(lambda: init_state(MODEL, TrainingConfig(steps=1, ema_decay=0.5), 64)).params
    matrices = sum(4 * leaf.size for leaf in jax.tree.leaves(params) if leaf.ndim == 2)
    copies = 4  # parameters, two moments, average
    assert whole - report["bytes"]["1 8 1"] == pytest.approx(copies * matrices * 7 / 8)
    assert report["bytes"]["2 2 2"] < whole / 3


def test_letters_become_axes_of_the_mesh():
    mesh = jax.sharding.AbstractMesh((2, 2, 4), ("data", "fsdp", "tensor"))
    assert parameter_spec(mesh, "DF", (16, 32)) == P("fsdp", "tensor")
    assert parameter_spec(mesh, "ND", (16, 16)) == P("tensor", "fsdp")
    assert parameter_spec(mesh, "F", (32,)) == P("tensor")
    assert parameter_spec(mesh, "D", (16,)) == P(None)
    assert parameter_spec(mesh, "VD", (30, 16)) == P(None, "fsdp")  # 30 cannot be divided by 4
    assert parameter_spec(mesh, ".N", (32, 4)) == P(None, "tensor")


def test_every_parameter_has_a_letter_for_each_axis_whatever_the_model():
    mesh, training = make_mesh(MeshConfig()), TrainingConfig(steps=1)
    scores = [replace(MODEL, score=score) for score in ("general", "additive")]
    for model in [*scores, *(replace(MODEL, positions=positions) for positions in ("relative", "learned"))]:
        jax.tree.map(lambda leaf: leaf.sharding.shard_shape(leaf.shape), abstract_state(mesh, model, training, 64))


@pytest.mark.parametrize("name", ["adam", "lion", "adafactor"])
def test_whatever_an_optimizer_keeps_lies_with_its_parameter_or_everywhere(name):
    """Adafactor keeps vectors of a matrix, which cannot be divided as the matrix is."""
    transform = {"adam": optax.adam, "lion": optax.lion, "adafactor": optax.adafactor}[name](1.0)
    mesh = jax.sharding.AbstractMesh((1, 2, 2), ("data", "fsdp", "tensor"))
    everywhere, divided = jax.NamedSharding(mesh, P()), jax.NamedSharding(mesh, P("fsdp", "tensor"))
    params = {"kernel": jax.ShapeDtypeStruct((128, 256), np.float32, sharding=divided)}
    shapes = jax.eval_shape(transform.init, params)
    state = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=everywhere), shapes)
    leaves = jax.tree.leaves(state)
    found = jax.tree.leaves(shard_optimizer(transform, state, params))
    parts = [leaf.sharding.shard_shape(leaf.shape) for leaf in found]
    assert parts == [(64, 128) if leaf.shape == (128, 256) else leaf.shape for leaf in leaves]


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((3, 1, 1), r"mesh.data × mesh.fsdp × mesh.tensor = 3 × 1 × 1 is a mesh of 3 devices, but 1 are available"),
        ((0, 2, 4), r"= 1 × 2 × 4 is a mesh of 8 devices, but 1 are available"),
    ],
)
def test_a_mesh_of_more_devices_than_there_are(shape, told):
    with pytest.raises(UserError, match=told):
        make_mesh(MeshConfig(*shape))


@pytest.mark.parametrize(
    ("shape", "rows", "told"),
    [
        ((4, 2, 1), 12, "data.batch_rows=12 cannot be divided by training.accumulation × mesh.data × mesh.fsdp = 8"),
        ((1, 3, 1), 12, "model.d_model=16 cannot be divided by mesh.fsdp = 3"),
        ((1, 1, 8), 8, "model.num_heads=4 cannot be divided by mesh.tensor = 8"),
    ],
)
def test_what_does_not_divide_is_refused(shape, rows, told):
    mesh = jax.sharding.AbstractMesh(shape, ("data", "fsdp", "tensor"))
    with pytest.raises(UserError, match=told):
        check_divisible(mesh, MODEL, rows, 1)


IMPOSSIBLE = [{"data": -1}, {"fsdp": 0}, {"coordinator": "host:1"}]
IMPOSSIBLE += [{"processes": 2, "coordinator": f"host:{port}"} for port in ("port", "65536")]
IMPOSSIBLE += [{"processes": 2, "coordinator": "host:1", "process": 2}]


@pytest.mark.parametrize("changes", IMPOSSIBLE)
def test_meshes_that_cannot_be(changes):
    with pytest.raises(ValueError, match=r"mesh\."):
        MeshConfig(**changes)
