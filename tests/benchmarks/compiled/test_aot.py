"""Programs compiled for GPUs and TPUs by their own compilers: make test-aot installs them, and runs these tests."""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.compiled.compile import Compiled, compile_program
from benchmarks.compiled.hlo import COLLECTIVES
from benchmarks.compiled.programs import list_programs
from benchmarks.compiled.targets import open_target
from configs.load import load_config
from configs.schema import RunConfig
from scripts.compile_for import plan

ROOT = Path(__file__).parents[3]
SMALL = "configs/tatoeba-base.yaml"
CHANGES = (
    "model.d_model=256",
    "model.num_heads=8",
    "model.head_dim=128",
    "model.d_ff=512",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.dropout=0.1",
    "model.positions=sinusoidal",
    "tokenizer.vocab_size=2048",
    "data.row_length=128",
    "data.batch_rows=32",
    "training.ema_decay=0",
    "decoding.batch_sentences=8",
)
GPU = pytest.mark.skipif(find_spec("jax_plugins") is None, reason="needs pip install -e '.[aot-cuda]'")
TPU = pytest.mark.skipif(find_spec("libtpu") is None, reason="needs pip install -e '.[aot-tpu]'")
pytestmark = pytest.mark.aot


def config_of(*changes: str) -> RunConfig:
    return load_config(ROOT / SMALL, [*CHANGES, *changes])


@cache
def compiled(target: str, *changes: str, program: int = 0) -> Compiled:
    """The training step, or another program, of a small model."""
    opened = open_target(target)
    return compile_program(list_programs(plan(config_of(*changes), opened))[program], opened)


def assert_state_is_as_expected(target: str, found: Compiled) -> None:
    """To the byte on a GPU; a TPU pads vectors. All that may be written over is."""
    assert found.held == pytest.approx(found.expected["held"], rel=0 if target.startswith("h") else 0.005)
    assert not found.not_donated


KERNELS = [
    *(pytest.param("h200:1", kernel, marks=GPU) for kernel in ("definition", "xla", "chunked", "cudnn")),
    pytest.param("h100:1", "definition", marks=GPU),
    pytest.param("t4:1", "definition", marks=GPU),
    *(pytest.param("v5e:1x1", kernel, marks=TPU) for kernel in ("definition", "xla", "chunked", "tpu")),
    pytest.param("v6e:1x1", "tpu", marks=TPU),
]


@pytest.mark.parametrize(("target", "kernel"), KERNELS)
def test_a_step_with_each_kernel(target, kernel):
    """Encoder, decoder and encoder-decoder attention: a call each forward and backward, splash attention two."""
    found = compiled(target, f"model.kernel={kernel}")
    if target != "t4:1":  # whose arithmetic is not counted there: it has no bfloat16
        assert_state_is_as_expected(target, found)
        assert kernel == "xla" or not any("f32" in dtypes for dtypes in found.products)
    assert not found.collectives
    calls = {"__cudnn$fmhaSoftmax": 3, "__cudnn$fmhaSoftmaxBackward": 3} if kernel == "cudnn" else {}
    calls |= {"tpu_custom_call": 9} if kernel == "tpu" else {}
    assert {name: count for name, count in found.kernels.items() if "custom_call" in name or "cudnn" in name} == calls


MESHES = ["mesh.fsdp=1", "mesh.fsdp=8", "mesh.fsdp=4", "mesh.tensor=8", "mesh.fsdp=2 mesh.tensor=2"]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("target", [pytest.param("h200:8", marks=GPU), pytest.param("v5e:2x4", marks=TPU)])
def test_a_step_on_each_mesh(target, mesh):
    """A GPU sends what arithmetic says. A TPU passes on parts of large gradients, and sums small ones whole."""
    found = compiled(target, *mesh.split())
    assert_state_is_as_expected(target, found)
    assert not any("f32" in dtypes for dtypes in found.products)
    sent, wanted = (
        {kind: sum(each["sent"] for each in transfers if each["kind"] == kind) for kind in COLLECTIVES}
        for transfers in (found.collectives, found.expected["transfers"])
    )
    if target.startswith("h200"):
        assert sent == pytest.approx(wanted, rel=0.01)
    else:
        assert 0.9 < sum(sent.values()) / sum(wanted.values()) < 1.6


@pytest.mark.parametrize("target", [pytest.param("h200:2", marks=GPU), pytest.param("v5e:2x2", marks=TPU)])
@pytest.mark.parametrize("program", [1, 2])
def test_validation_and_search(target, program):
    found = compiled(target, program=program)
    assert 0 < found.held < found.peak and not any("f32" in dtypes for dtypes in found.products)


@GPU
def test_sums_of_gradients_leave_the_loop_of_accumulation_on_a_gpu():
    once, four_times = (compiled("h200:8", "data.batch_rows=64", f"training.accumulation={n}") for n in (1, 4))
    one, four = (sum(each["sent"] for each in found.collectives) for found in (once, four_times))
    assert four == pytest.approx(one, rel=0.01)


@pytest.mark.parametrize("target", [pytest.param("h200:1", marks=GPU), pytest.param("v5e:1x1", marks=TPU)])
def test_what_does_not_fit_is_one_line(target, call, tmp_path):
    figures = tmp_path / "figures.json"
    rows = 131072 if target == "h200:1" else 16384
    more = f"data.batch_rows={rows}", "--only=training step", "--json", figures
    done = call("scripts/compile_for.py", target, ROOT / SMALL, *CHANGES, *more)
    [line] = done.stderr.decode().splitlines()
    assert done.returncode == 2 and line.startswith("error: the training step does not fit: it needs "), line
    assert "data.batch_rows smaller" in line


LARGE = [
    pytest.param("h200:8", "transformer-base", "data.batch_rows=1024", marks=GPU),
    pytest.param("v5p:2x2x4", "transformer-big", "mesh.fsdp=16 data.batch_rows=512 model.kernel=tpu", marks=TPU),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("target", "name", "changes"), LARGE)
def test_the_papers_models(target, name, changes, call, tmp_path):
    figures = tmp_path / "figures.json"
    done = call("scripts/compile_for.py", target, ROOT / f"configs/{name}.yaml", *changes.split(), "--json", figures)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    step, *_ = json.loads(figures.read_text())["programs"]
    assert step["held"] == pytest.approx(step["expected"]["held"], rel=0 if target == "h200:8" else 0.001)
    assert not step["not_donated"] and not any("f32" in dtypes for dtypes in step["products"])
