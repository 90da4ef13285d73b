"""Each choice of the model trains it through nothing but config overrides."""

from pathlib import Path

import jax
import numpy as np
import pytest

from configs.load import load_config
from data.batches.packing import Batch
from model.transformer import build
from tests.drawn import drawn_state
from tests.variants import variants
from training.step import make_train_step

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"
SMALL = [
    *("model.d_model=16", "model.num_heads=4", "model.head_dim=4", "model.d_ff=32", "model.dropout=0"),
    *("model.encoder_layers=1", "model.decoder_layers=1", "training.warmup_steps=1", "training.label_smoothing=0"),
]
OVERRIDES = [
    *([f"model.{key}={value}" for key, value in changes.items()] for changes in variants().values()),
    ["model.rematerialize=true"],
    ["model.attention_dropout=0.1"],
    ["model.value_residual=true", "model.encoder_layers=2", "model.decoder_layers=2"],  # from the second block on
]


def copying(vocab_size: int) -> Batch:
    """Two sentences a row whose translation is the sentence itself."""
    tokens = np.random.default_rng(0).integers(4, vocab_size, (8, 10)).astype(np.int32)
    segments, positions = np.tile(np.repeat([1, 2], 5), (8, 1)), np.tile(np.arange(5), (8, 2))
    inputs = np.where(positions == 0, 2, np.roll(tokens, 1, axis=1))
    return Batch(
        *(array.astype(np.int32) for array in (tokens, segments, positions, inputs, tokens, segments, positions))
    )


@pytest.mark.slow
@pytest.mark.parametrize("overrides", OVERRIDES, ids=" ".join)
def test_it_learns_and_each_of_its_parameters_is_trained(overrides):
    config = load_config(QUICKSTART, [*SMALL, *overrides])
    state = drawn_state(config.model, config.training, 20)
    start = jax.tree.map(np.asarray, state.params)
    step, batch, losses = make_train_step(build(config.model, 20), config.training), copying(20), []
    for _ in range(60):
        state, report = step(state, batch)
        losses.append(float(report.loss))
    assert losses[-1] < 0.6 * losses[0], losses[::10]
    moved = jax.tree.map(lambda new, old: bool((np.asarray(new) != old).any()), state.params, start)
    assert all(jax.tree.leaves(moved)), moved
