"""Sizes of a moment, and measurements that are written down instead of measured."""

import jax
import pytest

from benchmarks.cost.operations import DecodingCost, StepCost
from benchmarks.turns import Contestant, Measurement, Results
from model.config import ModelConfig
from training.config import TrainingConfig

MODEL = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=2, d_ff=32)
DECODING = DecodingCost(MODEL, vocab_size=50, batch=3, sources=4, length=5)
STEP = StepCost(MODEL, vocab_size=50, rows=3, sources=4, targets=5)
TRAINING = TrainingConfig(steps=1, learning_rate=1e-2)
RUNS_ON_CPU = pytest.mark.skipif(jax.default_backend() != "cpu", reason="has the contestants of a CPU")


def measured(name, workload, milliseconds, facts=None):
    """A contestant that took part."""
    return Measurement(Contestant(name, workload), milliseconds, facts, None)


def refused(name, workload, obstacle):
    return Measurement(Contestant(name, workload), {}, None, obstacle)


def results(*measurements, **rates):
    return Results(list(measurements), rates, rounds=7)
