"""Schedules of regularisation: factors by hand, what they multiply, and runs that stop in the middle of a ramp."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from configs.load import load_config
from experiment.load_run import load_run
from model.transformer import build
from tests.drawn import drawn_params, drawn_state
from tests.training.test_state import MODEL, VOCAB, make_batch
from train import train
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


def test_factors_by_hand():
    assert [float(factor_at(RAMP, step)) for step in (0, 4, 5, 7, 8, 2**31 - 1)] == [0, 0, 0.25, 0.75, 1, 1]
    assert [float(factor_at(CYCLE, step)) for step in (0, 5, 10, 11, 16, 22)] == [1, 0.5, 0, 1, 0.5, 0]


def gradients(model, training):
    compiled = jax.jit(make_gradients(build(model, VOCAB), training))
    return compiled(drawn_params(model, VOCAB), make_batch(0), jnp.int32(6))


UNITS, WORDS = dict.fromkeys(("dropout", "activation_dropout"), 0.5), {"source_word_dropout": 0.5}
slow = partial(pytest.param, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("rates", "key", "changes"),
    [(UNITS, "dropout_factor", {}), slow(WORDS, "word_dropout_factor", {"consistency": "simcut", "accumulation": 2})],
)
def test_the_gradient_in_a_ramp_is_that_of_a_model_with_this_rate(rates, key, changes):
    """At step 6, half of the rate; with the same draws, as the rate decides how a draw is read, not what is drawn."""
    training, ramp = replace(CONFIG, **changes), dict[str, Any]({key: RAMP})
    found = gradients(replace(MODEL, **rates), replace(training, **ramp))
    expected = gradients(replace(MODEL, **{name: rate / 2 for name, rate in rates.items()}), training)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)


def test_a_factor_of_one_trains_as_none_bit_for_bit():
    model = replace(MODEL, dropout=0.5)  # division by 1 - rate is exact, whether it is known when compiling or not
    one: Any = {"dropout_factor": [[0.0, 1.0]], "learning_rate_factor": [[0.0, 1.0]]}
    states = []
    for config in (CONFIG, replace(CONFIG, **one)):
        state, _ = make_train_step(build(model, VOCAB), config)(drawn_state(model, config, VOCAB), make_batch(0))
        states.append(state)
    jax.tree.map(np.testing.assert_array_equal, *states)


def test_the_learning_rate_cycles_by_hand():
    rate = learning_rate(replace(CONFIG, warmup_steps=4, learning_rate=0.5, learning_rate_factor=CYCLE))
    found = [float(rate(updates)) for updates in (1, 5, 10, 11, 16)]
    assert found == pytest.approx([0.5 * 2 / 4 * 0.9, 0.25, 0, 0.5, 0.25], rel=1e-6)


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_the_decay_of_an_update_by_hand(name):
    """Without gradients, w becomes w - rate · decay · factor · w."""
    decay: Any = {"weight_decay": 0.5, "weight_decay_factor": [[0.0, 1.0], [2.0, 0.0]]}
    transform = optimizer(replace(CONFIG, optimizer=name, **decay))
    params, expected = {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}, 1.0
    state, zero = transform.init(params), jax.tree.map(jnp.zeros_like, params)
    for factor in (1.0, 0.5, 0.0, 0.0):
        updates, state = transform.update(zero, state, params)
        params = optax.apply_updates(params, updates)
        expected -= 0.1 * 0.5 * factor * expected
        np.testing.assert_allclose(params["kernel"], expected, rtol=1e-6)
    np.testing.assert_array_equal(params["bias"], 1)


SETTINGS = """
model.dropout=0.4 model.target_word_dropout=0.2 training.optimizer=adamw training.weight_decay=0.1 training.save_every=1
training.log_every=1 training.keep=9 training.eval_every=8 decoding.beam_size=1 training.dropout_factor=[[1,0],[7,1]]
training.word_dropout_factor=[[2,1],[6,0]] training.weight_decay_factor=[[0,1],[8,0]]
training.learning_rate_factor=[[0,1],[8,0.5]]
""".split()


@pytest.mark.slow
def test_a_run_that_stops_in_a_ramp_ends_as_without_and_is_replayed_bit_for_bit(small_experiment, tmp_path):
    for name, steps in (("whole", 8), ("parts", 4), ("parts", 8)):
        train(load_config(small_experiment, [*SETTINGS, f"run_dir={tmp_path / name}", f"training.steps={steps}"]))
    run = load_run(tmp_path / "parts")
    like = state_shapes(run.config.model, run.config.training, run.config.tokenizer.vocab_size)
    jax.tree.map(np.testing.assert_array_equal, *(restore(tmp_path / name, 8, like) for name in ("whole", "parts")))
    told = {line["step"]: line for line in read_metrics(run.folder) if line["kind"] == "train"}
    expected = {
        "dropout_factor": [0, 0.5, 1],
        "word_dropout_factor": [1, 0.5, 0],
        "weight_decay_factor": [1, 0.5, 0.125],
    }
    assert {key: [told[step][key] for step in (1, 5, 8)] for key in expected} == expected
    verified = inspect_update(run.recorded, 6).verified
    assert (verified["metrics"], verified["checkpoint"]) == ("equal, to the last digit", "equal, bit for bit")
