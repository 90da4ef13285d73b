"""What is compiled equals its references; a fault of one percent at one shape is found."""

from pathlib import Path

import numpy as np
import pytest

from attention.multihead import attend
from benchmarks.audit import parts
from benchmarks.audit.compare import Finding, compare, difference, figures_of
from benchmarks.audit.parts import Part, parts_of
from benchmarks.cost.operations import StepCost
from configs.load import load_config
from configs.schema import RunConfig
from model.config import ModelConfig

TINY = "d_model=16 num_heads=2 head_dim=8 value_dim=8 d_ff=24 encoder_layers=1 decoder_layers=1".split()
OVERRIDES = [f"model.{each}" for each in TINY] + ["tokenizer.vocab_size=300", "data.batch_rows=4", "data.row_length=20"]
OVERRIDES += ["decoding.batch_sentences=2", "decoding.beam_size=2"]
CONFIGS = Path(__file__).parents[3] / "configs"


def config(name: str, *overrides: str) -> RunConfig:
    return load_config(CONFIGS / f"{name}.yaml", [*OVERRIDES, *overrides])


def with_reference(config: RunConfig) -> list[Part]:
    return [part for part in parts_of(config) if part.reference]


def check(part: Part) -> Finding:
    assert part.reference
    found, expected = figures_of(part.compute(*part.arguments)), figures_of(part.reference(*part.arguments))
    return compare(part.name, part.tolerance, found, expected, same_bits=True)


@pytest.mark.parametrize("name", ["tatoeba-small", "transformer-base"])  # Muon and Adam, bfloat16 and float32
def test_every_part_is_what_its_definition_says(name):
    found = [check(part) for part in with_reference(config(name, "model.key_value_heads=1"))]
    assert [finding for finding in found if not finding.is_right] == []
    names = " ".join(finding.part for finding in found)
    for expected in ("encoder-decoder", "definition", "xla", "chunked", "16 × 24", "loss", "dropout"):
        assert expected in names


def test_one_percent_too_much_at_one_shape_is_found(monkeypatch):
    def wrong(query, *arrays, mask, kernel):
        output = attend(query, *arrays, mask=mask, kernel=kernel)
        return output * (1.01 if kernel == "xla" and mask.causal else 1)

    monkeypatch.setattr(parts, "attend", wrong)
    model = ModelConfig(d_model=16, num_heads=2, head_dim=8, value_dim=8)
    found = [check(part) for part in parts.attentions(StepCost(model, 60, 4, 20, 20, sentences=4))]
    assert [finding.part for finding in found if not finding.is_right] == ["decoder self-attention, xla"]


@pytest.mark.parametrize(
    ("found", "norm", "peak"),
    [([3.0, 4.0], 0.0, 0.0), ([3.0, 4.5], 0.1, 0.1 * 2**0.5), ([3.0, np.nan], np.inf, np.inf)],
)
def test_differences_by_hand(found, norm, peak):
    assert difference(np.array(found), np.array([3.0, 4.0])) == pytest.approx((norm, peak))


@pytest.mark.parametrize(
    "reproducible",
    [pytest.param("same_mesh", marks=pytest.mark.slow), pytest.param("any_mesh", marks=pytest.mark.nightly)],
)
def test_the_script_compares_three_processes_and_keeps_its_verdict(call, tmp_path, monkeypatch, reproducible):
    """Steps and the search, too: JAX without jit is their reference."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    overrides = [*OVERRIDES, f"training.reproducible={reproducible}", "data.batch_rows=8"]
    done = call("scripts/check_numbers.py", CONFIGS / "quickstart.yaml", *overrides)
    lines = done.stdout.decode().splitlines()
    assert all(line.endswith(" right") for line in lines[3:])
    parts = {line.partition("  ")[0] for line in lines[3:]}
    assert parts > {"gradients", "gradients in float32", "two steps", "search"}
    [verdict] = tmp_path.glob("puente/numbers/*.json")
    assert '"wrong": []' in verdict.read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["quickstart", "tatoeba-small"])
def test_shipped_configs_are_right_at_their_own_shapes(call, name):
    call("scripts/check_numbers.py", CONFIGS / f"{name}.yaml")
