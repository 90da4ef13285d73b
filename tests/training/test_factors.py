"""Schedules of regularisation: factors by hand, what they multiply, and runs that stop in the middle of a ramp."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from common.special_tokens import PAD
from configs.load import load_config
from experiment.load_run import load_run
from model.embedding import hide
from model.layers import dropout
from model.transformer import build
from tests.drawn import drawn_params, drawn_state
from tests.training.test_state import MODEL, VOCAB, make_batch
from training.config import TrainingConfig
from training.factors import factor_at
from training.optimizer import learning_rate, optimizer
from training.replay.inspect_step import inspect_update
from training.run.checkpoint import restore
from training.run.metrics import read_metrics
from training.state import state_shapes
from training.step import make_gradients, make_train_step

RAMP = [[4.0, 0.0], [8.0, 1.0]]
CYCLE = [[0.0, 1.0], [10.0, 0.0], [11.0, 1.0], [21.0, 0.0]]
CONFIG = TrainingConfig(steps=10, warmup_steps=0, schedule="constant", clip_norm=0.0, learning_rate=0.1)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        (RAMP, {0: 0, 4: 0, 5: 0.25, 7: 0.75, 8: 1, 2**31 - 1: 1}),
        (CYCLE, {0: 1, 5: 0.5, 10: 0, 11: 1, 16: 0.5, 21: 0, 22: 0}),
        ([[3.0, 0.5]], {0: 0.5, 3: 0.5, 9: 0.5}),
        ([], {0: 1, 7: 1}),
    ],
)
def test_factors_by_hand(points, expected):
    assert {step: float(factor_at(points, step)) for step in expected} == expected


def test_a_factor_multiplies_the_rate_of_dropout():
    x, key = jnp.ones((100, 1000)), jax.random.key(0)
    rates = (dropout(x, 0.4, key, jnp.float32(factor)) for factor in (0.5, 0.0, 1.0))
    half, none, whole = map(np.asarray, rates)
    np.testing.assert_allclose(np.unique(half), [0, 1 / 0.8], rtol=1e-6)
    assert np.mean(half == 0) == pytest.approx(0.2, abs=0.005)
    np.testing.assert_array_equal(none, x)
    np.testing.assert_allclose(whole, dropout(x, 0.4, key), rtol=1e-6)
    assert dropout(x.astype(jnp.bfloat16), 0.4, key, jnp.float32(0.5)).dtype == jnp.bfloat16


def test_a_factor_multiplies_the_rate_of_word_dropout():
    ids, key = jnp.full((100, 1000), 20), jax.random.key(0)
    for factor, share in ((0.0, 0.0), (0.5, 0.2), (1.0, 0.4)):
        hidden = hide(ids, 0.4, key, jnp.float32(factor)) == PAD
        assert float(hidden.mean()) == pytest.approx(share, abs=0.005 * bool(share))


WORDS = {"source_word_dropout": 0.5, "target_word_dropout": 0.5}


@pytest.mark.parametrize(
    ("rates", "factor", "changes"),
    [
        ({"dropout": 0.5}, "dropout_factor", {}),
        pytest.param(WORDS, "word_dropout_factor", {}, marks=pytest.mark.slow),
        pytest.param({"dropout": 0.5}, "dropout_factor", {"accumulation": 2}, marks=pytest.mark.slow),
        pytest.param({"dropout": 0.5}, "dropout_factor", {"consistency": "simcut"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_gradient_in_a_ramp_is_that_of_a_model_with_this_rate(rates, factor, changes):
    """At step 6, half of the rate; with the same draws, as the rate decides how a draw is read, not what is drawn."""

    def gradients(model, training):
        compiled = jax.jit(make_gradients(build(model, VOCAB), training))
        return compiled(drawn_params(model, VOCAB), make_batch(0), jnp.int32(6))

    training, schedule = replace(CONFIG, **changes), dict[str, Any]({factor: RAMP})
    halves = {key: rate / 2 for key, rate in rates.items()}
    found = gradients(replace(MODEL, **rates), replace(training, **schedule))
    expected = gradients(replace(MODEL, **halves), training)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)


def test_a_factor_of_one_trains_as_none_bit_for_bit():
    model = replace(MODEL, dropout=0.5)  # division by 1 - rate is exact, whether it is known when compiling or not
    one: Any = {"dropout_factor": [[0.0, 1.0]], "learning_rate_factor": [[0.0, 1.0]]}
    states = []
    for config in (CONFIG, replace(CONFIG, **one)):
        step, state = make_train_step(build(model, VOCAB), config), drawn_state(model, config, VOCAB)
        for seed in range(3):
            state, _ = step(state, make_batch(seed))
        states.append(state)
    jax.tree.map(np.testing.assert_array_equal, *states)


def test_the_learning_rate_cycles_by_hand():
    rate = learning_rate(replace(CONFIG, warmup_steps=4, learning_rate=0.5, learning_rate_factor=CYCLE))
    found = [float(rate(updates)) for updates in (1, 5, 10, 11, 16)]
    assert found == pytest.approx([0.5 * 2 / 4 * 0.9, 0.25, 0, 0.5, 0.25], rel=1e-6)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_the_decay_of_an_update_by_hand(name):
    """Without gradients, w becomes w - rate · decay · factor · w."""
    decaying = {
        "weight_decay": 0.5,
        "weight_decay_factor": [[0.0, 1.0], [2.0, 0.0]],
        "learning_rate_factor": [[0.0, 0.5]],
    }
    transform = optimizer(replace(CONFIG, optimizer=name, **decaying))
    params, expected = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}, 1.0
    state, zero = transform.init(params), jax.tree.map(jnp.zeros_like, params)
    for factor in (1.0, 0.5, 0.0, 0.0):
        updates, state = transform.update(zero, state, params)
        params = optax.apply_updates(params, updates)
        expected -= 0.05 * 0.5 * factor * expected
        np.testing.assert_allclose(params["kernel"], expected, rtol=1e-6)
    np.testing.assert_array_equal(params["bias"], 1)


@pytest.mark.slow
def test_a_run_that_stops_in_a_ramp_ends_as_without_and_is_replayed_bit_for_bit(small_experiment, tmp_path):
    from train import train

    def trained(name, *overrides):
        settings = f"""
        run_dir={tmp_path / name} model.dropout=0.4 model.target_word_dropout=0.2 training.optimizer=adamw
        training.weight_decay=0.1 training.warmup_steps=1 training.log_every=1 training.save_every=1 training.keep=9
        training.eval_every=8 decoding.beam_size=1 training.dropout_factor=[[1,0],[7,1]]
        training.word_dropout_factor=[[2,1],[6,0]] training.weight_decay_factor=[[0,1],[8,0]]
        training.learning_rate_factor=[[0,1],[8,0.5]]
        """.split()
        train(load_config(small_experiment, [*settings, *overrides]))
        return tmp_path / name

    whole, parts = trained("whole", "training.steps=8"), trained("parts", "training.steps=4")
    trained("parts", "training.steps=8")
    config = load_run(whole).config
    like = state_shapes(config.model, config.training, config.tokenizer.vocab_size)
    jax.tree.map(np.testing.assert_array_equal, *(restore(run, 8, like) for run in (whole, parts)))
    told = {line["step"]: line for line in read_metrics(parts) if line["kind"] == "train"}
    assert [told[step]["dropout_factor"] for step in (1, 2, 5, 8)] == pytest.approx([0, 0, 0.5, 1])
    assert [told[step]["word_dropout_factor"] for step in (1, 5, 8)] == pytest.approx([1, 0.5, 0])
    assert [told[step]["weight_decay_factor"] for step in (1, 5)] == pytest.approx([1, 0.5])
    found = inspect_update(load_run(parts).recorded, 6)
    assert found.verified["metrics"] == "equal, to the last digit"
    assert found.verified["checkpoint"] == "equal, bit for bit"
