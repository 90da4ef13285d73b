"""The training step: accumulation, averaging, sums and dropout against the same thing done another way."""

from functools import cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.errors import UserError
from data.batches.packing import Batch
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from model.config import ModelConfig
from model.transformer import build
from tests.drawn import drawn_state
from tests.prepared import stream_of
from training.config import TrainingConfig
from training.optimizer import learning_rate
from training.progress import LAG, DivergenceCheck, training_metrics
from training.state import Skipped, reset_sums, zero_sums
from training.step import StepReport, make_loss_step, make_train_step

VOCAB = 30
MODEL = ModelConfig(d_model=8, num_heads=2, head_dim=4, encoder_layers=1, decoder_layers=1, d_ff=16, dropout=0.0)


def make_batch(seed, rows=4, length=6):
    generator = np.random.default_rng(seed)
    tokens = generator.integers(4, VOCAB, (3, rows, length))
    segments = np.where(np.arange(length) < generator.integers(1, length + 1, (rows, 1)), 1, 0)
    positions = np.tile(np.arange(length), (rows, 1))
    arrays = tokens[0], segments, positions, tokens[1], tokens[2], segments, positions
    return Batch(*(array.astype(np.int32) for array in arrays))


@cache
def compiled_step(model, config):
    """A training step that all tests with this model and config share: compiling it is what takes their time."""
    return make_train_step(build(model, VOCAB), config)


def run(batches, model=MODEL, **changes):
    config = TrainingConfig(**({"steps": 10, "warmup_steps": 1} | changes))
    step, state, losses = compiled_step(model, config), drawn_state(model, config, VOCAB), []
    for batch in batches:
        state, report = step(state, batch)
        losses.append(float(report.loss))
    return state, losses


def assert_close(some, others, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), some, others)


@pytest.mark.slow
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


@pytest.mark.slow
def test_averaged_parameters_by_their_recurrence():
    batches = [make_batch(seed) for seed in range(3)]
    average = drawn_state(MODEL, TrainingConfig(steps=10), VOCAB).params
    for done in range(3):
        params = run(batches[: done + 1])[0].params
        decay = min(0.5, (1 + done) / (10 + done))
        average = jax.tree.map(lambda old, new, d=decay: d * old + (1 - d) * new, average, params)
    assert_close(run(batches, ema_decay=0.5)[0].averaged, average, rtol=1e-4, atol=1e-6)


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
    loss = make_loss_step(build(MODEL, VOCAB), config.label_smoothing)(drawn_state(MODEL, config, VOCAB).params, batch)
    assert float(loss.objective / loss.tokens) == pytest.approx(run([batch])[1][0], rel=1e-6)


def test_dropout_differs_between_steps_and_seeds_but_not_between_runs():
    dropping = ModelConfig(**(vars(MODEL) | {"dropout": 0.5}))
    batches = [make_batch(0)] * 2
    first = run(batches, dropping, learning_rate=1e-30)[1]
    assert first[0] != first[1]  # parameters stand still: only the dropout moved
    assert run(batches, dropping, learning_rate=1e-30)[1] == first


@pytest.mark.slow
def test_optimizer_sees_the_mean_over_real_tokens():
    # With plain sums, doubling the batch would double the gradient; with the mean it changes nothing.
    batch = make_batch(0)
    doubled = Batch(*(np.concatenate([array, array]) for array in batch))
    once, twice = (run([b])[0].sums.gradient_norm for b in (batch, doubled))
    assert float(once) == pytest.approx(float(twice), rel=1e-5)
    assert jnp.isfinite(once)


def poisoned(state):
    """The state with one parameter that is not a number."""
    table = state.params["embedding"]["table"].at[5, 0].set(jnp.nan)
    return state._replace(params={**state.params, "embedding": {"table": table}})


def test_an_update_that_is_not_finite_is_counted_and_changes_nothing_else():
    config = TrainingConfig(steps=10, warmup_steps=1, ema_decay=0.9)
    step = compiled_step(MODEL, config)
    fresh = partial(drawn_state, MODEL, config, VOCAB)
    good, _ = step(fresh(), make_batch(0))
    before = jax.tree.map(np.asarray, poisoned(good))  # copies: the step takes its state away

    state, report = step(poisoned(good), make_batch(1))
    assert np.isnan(float(report.loss)) and int(report.skipped_in_row) == 1
    assert int(state.step) == 2
    assert tuple(map(int, state.skipped)) == (1, 1, 1)
    for name in ("params", "opt_state", "averaged", "sums"):
        jax.tree.map(np.testing.assert_array_equal, getattr(state, name), getattr(before, name))

    state, report = step(state, make_batch(2))
    assert tuple(map(int, state.skipped)) == (2, 2, 2) and int(report.skipped_in_row) == 2
    healed = state._replace(params=fresh().params)
    state, report = step(healed, make_batch(3))
    assert tuple(map(int, state.skipped)) == (0, 2, 2) and int(report.skipped_in_row) == 0
    assert tuple(map(int, reset_sums(state).skipped)) == (0, 0, 2)
    assert float(state.sums.steps) == 2  # the first and the last


def test_a_gradient_too_large_for_its_norm_is_not_taken_either():
    # The loss is finite; a parameter of 1e30 in the last norm's scale is beyond what a squared gradient can hold.
    config = TrainingConfig(steps=10, warmup_steps=1)
    state = drawn_state(MODEL, config, VOCAB)
    params = jax.tree.map(lambda leaf: leaf, state.params)
    params["final_norms"][1]["scale"] = params["final_norms"][1]["scale"] * 1e25
    state, report = compiled_step(MODEL, config)(state._replace(params=params), make_batch(0))
    assert np.isfinite(float(report.loss)) and not np.isfinite(float(report.gradient_norm))
    assert int(state.skipped.in_all) == 1


def test_a_step_too_large_for_its_parameters_is_not_taken_either():
    config = TrainingConfig(steps=10, warmup_steps=1, learning_rate=1e38, embedding_rate=1e3)  # 1e41 is infinite
    state = drawn_state(MODEL, config, VOCAB)
    before = jax.tree.map(np.asarray, state.params)
    state, report = compiled_step(MODEL, config)(state, make_batch(0))
    assert np.isfinite(float(report.loss)) and np.isfinite(float(report.gradient_norm))
    assert int(state.skipped.in_all) == 1
    jax.tree.map(np.testing.assert_array_equal, state.params, before)


def test_metrics_of_a_window_in_which_all_was_skipped_are_not_numbers():
    config = TrainingConfig(steps=10, warmup_steps=4)
    sums, skipped = zero_sums(), Skipped(*(jnp.int32(number) for number in (2, 2, 3)))
    told = training_metrics(sums, skipped, 5, 10, 1.0, config)
    assert np.isnan(told["loss"]) and np.isnan(told["gradient_norm"]) and told["skipped"] == 2
    assert told["learning_rate"] == float(learning_rate(config)(1))  # of the second update that was taken
    assert told["minutes_left"] == 5 / 60


@pytest.fixture
def phrases_stream():
    """Batches of 40 different pairs, some to an epoch."""
    numbers = [f"{tens} {ones}" for tens in ("uno", "dos", "tres", "seis") for ones in "abcdefghij"]
    pairs = Pairs(numbers, [number[::-1] for number in numbers])
    tokenizer = Tokenizer(train(pairs, TokenizerConfig(vocab_size=300, type="bpe")))
    return stream_of(pairs, tokenizer, DataConfig(row_length=16, batch_rows=4), 1)


def test_too_many_in_a_row_stop_the_run_and_name_step_and_batch(phrases_stream):
    report = StepReport(jnp.float32(np.nan), jnp.float32(np.nan), jnp.int32(3))
    steps = phrases_stream.steps_in(0)
    tolerant, strict = (DivergenceCheck(limit, phrases_stream, Path("runs/mine")) for limit in (4, 3))
    for check in (tolerant, strict):
        check.add(steps + 2, report)  # only looked at LAG steps later, or when it is waited for
    tolerant.wait()
    with pytest.raises(UserError) as stopped:
        strict.wait()
    assert f"not finite 3 times in a row, up to step {steps + 2} (batch 1 of epoch 1, from 0)" in str(stopped.value)
    assert f"replay.py runs/mine --step {steps} shows where it began" in str(stopped.value)

    late = DivergenceCheck(3, phrases_stream, Path("runs/mine"))
    finite = StepReport(jnp.float32(1), jnp.float32(1), jnp.int32(0))
    late.add(steps, report)
    for step in range(steps + 1, steps + 1 + LAG - 1):
        late.add(step, finite)
    with pytest.raises(UserError, match="3 times in a row"):
        late.add(steps + LAG, finite)
