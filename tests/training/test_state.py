"""The training step: accumulation, averaging, sums and dropout against the same thing done another way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data.packing import Batch
from model.config import ModelConfig
from model.transformer import build
from training.config import TrainingConfig
from training.state import init_state, make_loss_step, make_train_step

VOCAB = 30
MODEL = ModelConfig(d_model=8, num_heads=2, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=16, dropout=0.0)


def make_batch(seed, rows=4, length=6):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(4, VOCAB, (3, rows, length))
    segments = np.where(np.arange(length) < generator.integers(1, length + 1, (rows, 1)), 1, 0)
    positions = np.tile(np.arange(length), (rows, 1))
    arrays = tokens[0], segments, positions, tokens[1], tokens[2], segments, positions
    return Batch(*(array.astype(np.int32) for array in arrays))


def run(batches, model=MODEL, **changes):
    config = TrainingConfig(**({"steps": 10, "warmup_steps": 1} | changes))
    step, state, losses = make_train_step(build(model, VOCAB), config), init_state(model, config, VOCAB), []
    for batch in batches:
        state, reading = step(state, batch)
        losses.append(float(reading.loss))
    return state, losses


def assert_close(some, others, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), some, others)


@pytest.mark.parametrize("slices", [2, 4])
def test_accumulation_changes_nothing_but_memory(slices):
    # Rows have different numbers of real tokens: a mean of the slices' means would fail here.
    # Epsilon 1 makes Adam nearly linear; a small one would blow rounding up where a gradient is zero by nature,
    # as that of a key's bias is: it adds the same to all of a query's scores.
    batches, linear = [make_batch(0), make_batch(1)], {"epsilon": 1.0, "learning_rate": 1.0}
    whole, losses = run(batches, **linear)
    sliced, sliced_losses = run(batches, accumulation=slices, **linear)
    assert sliced_losses == pytest.approx(losses, rel=1e-5)
    assert_close(sliced.params, whole.params, atol=1e-5)


def test_packing_order_of_rows_changes_nothing():
    batch = make_batch(0)
    turned = Batch(*(array[::-1].copy() for array in batch))
    assert run([turned])[1] == pytest.approx(run([batch])[1], rel=1e-6)


def test_averaged_parameters_by_their_recurrence():
    batches = [make_batch(seed) for seed in range(3)]
    average = init_state(MODEL, TrainingConfig(steps=10, ema_decay=0.5), VOCAB).params
    for done in range(3):
        params = run(batches[: done + 1])[0].params
        decay = min(0.5, (1 + done) / (10 + done))
        average = jax.tree.map(lambda old, new, d=decay: d * old + (1 - d) * new, average, params)
    assert_close(run(batches, ema_decay=0.5)[0].averaged, average, rtol=1e-4, atol=1e-6)


def test_without_averaging_there_is_none_and_parameters_are_evaluated():
    state, _ = run([make_batch(0)])
    assert state.averaged is None
    assert state.evaluated is state.params


def test_sums_of_a_window():
    batches = [make_batch(0), make_batch(1)]
    state, losses = run(batches)
    tokens = [int((batch.target_segments > 0).sum()) for batch in batches]
    assert float(state.sums.target_tokens) == sum(tokens)
    assert float(state.sums.source_tokens) == sum(int((batch.source_segments > 0).sum()) for batch in batches)
    assert float(state.sums.steps) == 2
    assert float(state.sums.smoothed) == pytest.approx(np.dot(losses, tokens), rel=1e-5)


def test_validation_loss_equals_the_training_loss_without_dropout():
    config, batch = TrainingConfig(steps=10), make_batch(0)
    loss = make_loss_step(build(MODEL, VOCAB), config.label_smoothing)(init_state(MODEL, config, VOCAB).params, batch)
    assert float(loss.smoothed / loss.tokens) == pytest.approx(run([batch])[1][0], rel=1e-6)


def test_dropout_differs_between_steps_and_seeds_but_not_between_runs():
    dropping = ModelConfig(**(vars(MODEL) | {"dropout": 0.5}))
    batches = [make_batch(0)] * 2
    first = run(batches, dropping, learning_rate=1e-30)[1]
    assert first[0] != first[1]  # parameters stand still: only the dropout moved
    assert run(batches, dropping, learning_rate=1e-30)[1] == first


def test_training_lowers_the_loss():
    _, losses = run([make_batch(0)] * 40, learning_rate=0.02, steps=40)
    assert losses[-1] < 0.7 * losses[0]


def test_optimizer_sees_the_mean_over_real_tokens():
    # With plain sums, doubling the batch would double the gradient; with the mean it changes nothing.
    batch = make_batch(0)
    doubled = Batch(*(np.concatenate([array, array]) for array in batch))
    once, twice = (run([b], clip_norm=0.0)[0].sums.gradient_norm for b in (batch, doubled))
    assert float(once) == pytest.approx(float(twice), rel=1e-5)
    assert jnp.isfinite(once)
