"""Training steps compiled for GPUs and TPUs by their own compilers: make test-aot installs them and runs this."""

import json
import math
from functools import cache
from importlib.util import find_spec

import jax
import pytest

from benchmarks.compiled.compile import Compiled, compile_step
from benchmarks.compiled.targets import open_target
from common.programs import ROOT
from configs.load import load_config
from configs.schema import RunConfig
from training.devices.mesh import abstract_state, make_mesh

SMALL = "configs/tatoeba-base.yaml"
CHANGES = """
model.d_model=256 model.num_heads=8 model.head_dim=128 model.d_ff=512 model.encoder_layers=1 model.decoder_layers=1
model.dropout=0.1 model.positions=sinusoidal tokenizer.vocab_size=2048 data.row_length=128 data.batch_rows=32
training.ema_decay=0
""".split()
GPU = pytest.mark.skipif(find_spec("jax_plugins") is None, reason="needs pip install -e '.[aot-cuda]'")
TPU = pytest.mark.skipif(find_spec("libtpu") is None, reason="needs pip install -e '.[aot-tpu]'")
pytestmark = pytest.mark.aot


def config_of(*changes: str) -> RunConfig:
    return load_config(ROOT / SMALL, [*CHANGES, *changes])


@cache
def compiled(target: str, *changes: str) -> Compiled:
    """The training step of a small model."""
    opened, config = open_target(target), config_of(*changes)
    return compile_step(config, make_mesh(config.mesh, opened.devices), opened)


def assert_state_is_written_over(target: str, found: Compiled, config: RunConfig) -> None:
    """A device holds its part of the state, to the byte on a GPU (a TPU pads vectors), and a batch of seven arrays."""
    mesh = make_mesh(config.mesh, open_target(target).devices)
    state = abstract_state(mesh, config.model, config.training, config.tokenizer.vocab_size)
    parts = [(leaf.sharding.shard_shape(leaf.shape), leaf.dtype) for leaf in jax.tree.leaves(state)]
    expected = sum(math.prod(shape) * dtype.itemsize for shape, dtype in parts)
    rows = config.data.batch_rows // (mesh.shape["data"] * mesh.shape["fsdp"])
    relative = 0 if target.startswith("h") else 0.005
    assert found.held - 7 * 4 * rows * config.data.row_length == pytest.approx(expected, rel=relative)
    assert found.written_over == pytest.approx(expected, rel=relative)


KERNELS = [
    pytest.param("h200:1", "cudnn", marks=GPU),
    pytest.param("v5e:1x1", "tpu", marks=TPU),
    *(pytest.param("h200:1", kernel, marks=[GPU, pytest.mark.nightly]) for kernel in ("definition", "xla", "chunked")),
    *(pytest.param("v5e:1x1", kernel, marks=[TPU, pytest.mark.nightly]) for kernel in ("definition", "xla", "chunked")),
    *(pytest.param(target, "definition", marks=[GPU, pytest.mark.nightly]) for target in ("h100:1", "t4:1")),
    pytest.param("v6e:1x1", "tpu", marks=[TPU, pytest.mark.nightly]),
]


@pytest.mark.parametrize(("target", "kernel"), KERNELS)
def test_a_step_with_each_kernel(target, kernel):
    change = f"model.kernel={kernel}"
    assert_state_is_written_over(target, compiled(target, change), config_of(change))


MESHES = [
    "mesh.fsdp=2 mesh.tensor=2",
    *(pytest.param(mesh, marks=pytest.mark.nightly) for mesh in ("mesh.fsdp=1", "mesh.fsdp=8", "mesh.tensor=8")),
]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("target", [pytest.param("h200:8", marks=GPU), pytest.param("v5e:2x4", marks=TPU)])
def test_a_step_on_each_mesh(target, mesh):
    assert_state_is_written_over(target, compiled(target, *mesh.split()), config_of(*mesh.split()))


@pytest.mark.parametrize("target", [pytest.param("h200:1", marks=GPU), pytest.param("v5e:1x1", marks=TPU)])
def test_what_does_not_fit_is_one_line(target, call, tmp_path):
    figures = tmp_path / "figures.json"
    rows = 131072 if target == "h200:1" else 16384
    more = f"data.batch_rows={rows}", "--json", figures
    done = call("scripts/compile_for.py", target, ROOT / SMALL, *CHANGES, *more, code=2)
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("error: the training step does not fit: it needs "), line
    assert "data.batch_rows smaller" in line


LARGE = [
    pytest.param("h200:8", "transformer-base", "data.batch_rows=1024", marks=GPU),
    pytest.param("v5p:2x2x4", "transformer-big", "mesh.fsdp=16 data.batch_rows=512 model.kernel=tpu", marks=TPU),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("target", "name", "changes"), LARGE)
def test_the_papers_models(target, name, changes, call, tmp_path):
    figures = tmp_path / "figures.json"
    call("scripts/compile_for.py", target, ROOT / f"configs/{name}.yaml", *changes.split(), "--json", figures)
    step = json.loads(figures.read_text())["step"]
    assert step["written_over"] == pytest.approx(step["held"], rel=0.01)  # all but the batch
