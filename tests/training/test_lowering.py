"""What runs on a TPU is lowered for one: the training step, also on a mesh, and every search."""

import re
from contextlib import nullcontext
from dataclasses import replace

import jax
import numpy as np
import pytest

from attention.kernels.request import tracing_for
from evaluation.search import search_batch
from model.decoding.settings import Sampling, SearchSettings
from model.transformer import build, init_params
from tests.processes import run_code
from tests.training.devices.layouts import MODEL, ROWS, TRAINING, VOCAB, make_batch
from training.config import MeshConfig
from training.devices.mesh import Devices, abstract_state, make_mesh
from training.step import make_train_step


def for_a_tpu(jitted, *arguments, **options):
    """The program in StableHLO."""
    with tracing_for("tpu"):
        return jitted.trace(*arguments, **options).lower(lowering_platforms=("tpu",)).as_text()


def calls_in_the_training_step(*shape):
    """How often it calls a kernel that is made for TPUs, on a mesh of this shape."""
    model, mesh = replace(MODEL, kernel="tpu"), make_mesh(MeshConfig(*shape))
    like = abstract_state(mesh, model, TRAINING, VOCAB)
    step = make_train_step(build(model, VOCAB), TRAINING, like)
    return for_a_tpu(step, like, Devices(mesh, ROWS).place(make_batch(0))).count("@tpu_custom_call")


@pytest.mark.slow
def test_the_training_step_of_eight_devices_has_the_kernels_of_one():
    code = """
import jax
jax.config.update("jax_num_cpu_devices", 8)
from tests.training.test_lowering import calls_in_the_training_step as calls
print(*(calls(*shape) for shape in ((1, 1, 1), (8, 1, 1), (2, 2, 2))))
"""
    done = run_code(code)
    one, *eight = done.stdout.split()
    assert eight == [one, one] and int(one) > 1, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [SearchSettings(12, 3), SearchSettings(12), SearchSettings(12, search="sample", sampling=Sampling(0.7, 5, 0.9))],
)
def test_the_searches(settings):
    model = replace(MODEL, dropout=0.0)
    params = jax.eval_shape(lambda: init_params(model, VOCAB, jax.random.key(0)))
    sources, limits = np.ones((2, 8), np.int32), np.full(2, 12, np.int32)
    arguments = (build(model, VOCAB),), (params,), sources, limits, None, np.zeros(2, np.uint32), np.uint32(1)
    assert "stablehlo.while" in for_a_tpu(search_batch, *arguments, settings)


@pytest.mark.slow
def test_no_step_of_a_search_on_an_accelerator_converts_matrices():
    """They are bfloat16 before the loop; translations are the same."""
    model = replace(MODEL, dropout=0.0, dtype="bfloat16", matmul_dtype="bfloat16")
    params = init_params(model, VOCAB, jax.random.key(0))
    sources, limits = np.random.default_rng(0).integers(4, VOCAB, (4, 8), np.int32), np.full(4, 12, np.int32)

    def search(**options):
        jax.clear_caches()
        arguments = (build(model, VOCAB),), (params,), sources, limits, None, np.zeros(4, np.uint32), np.uint32(1)
        with tracing_for("gpu", 9.0) if options else nullcontext():
            traced = search_batch.trace(*arguments, SearchSettings(12, 3))
        loop = re.findall(r"stablehlo\.while.*", traced.lower().as_text())[0]
        return loop, traced.lower().compile()(*arguments[1:])

    (usual, found), (narrow, same) = search(), search(for_a_gpu=True)
    matrix = f"tensor<{MODEL.d_model}x{MODEL.d_ff}x"
    assert f"{matrix}f32>" in usual and f"{matrix}bf16>" not in usual
    assert f"{matrix}bf16>" in narrow and f"{matrix}f32>" not in narrow
    assert all((one == other).all() for one, other in zip(found, same, strict=True))
