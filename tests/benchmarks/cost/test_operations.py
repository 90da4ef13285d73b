"""The cost of a training step and of decoding by hand, and as XLA counts it."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.cost.operations import StepCost
from common.special_tokens import BOS, EOS
from model.config import ModelConfig
from model.loss import cross_entropy
from model.transformer import build, init_params
from tests.benchmarks.small import DECODING
from tests.benchmarks.small import STEP as COST
from training.config import TrainingConfig
from training.step import summed_loss


def test_operations_by_hand():
    """Multiplications of a row forward, one matrix after the other; with the gradients of both factors three times."""
    # Encoder, 4 tokens: four projections 16 × 16; up and down 16 × 32; scores and values of 4 keys, each 2 · 8 wide.
    encoder = 4 * (4 * 256 + 2 * 512) + 2 * 4 * 4 * 16
    # Decoder, a layer: 5 tokens with 4 + 2 projections, up and down; 4 source tokens with 2 projections;
    # scores and values of 5 and of 4 keys.
    layer = 5 * (6 * 256 + 2 * 512) + 4 * 2 * 256 + 2 * 5 * (5 + 4) * 16
    logits = 5 * 16 * 50
    assert COST.flops() == 2 * 3 * 3 * (encoder + 2 * layer + logits)


OTHER_HEADS = {"key_value_heads": 1, "value_dim": 32, "score": "general", "matmul_dtype": "bfloat16"}


@pytest.mark.parametrize("changes", [{}, pytest.param(OTHER_HEADS, marks=pytest.mark.slow)], ids=str)
def test_xla_counts_as_many_operations(changes):
    """And some more: norms, softmax and the loss, which are little where the model is wide."""
    model = replace(ModelConfig(d_model=256, encoder_layers=1, decoder_layers=1), **changes)
    cost = StepCost(model, 2000, rows=4, sources=24, targets=40)
    graphdef = build(model, cost.vocab_size)

    def loss(params, batch):
        loss = partial(cross_entropy, smoothing=0.1)
        return summed_loss(graphdef, params, batch, loss, None).objective

    params = jax.eval_shape(lambda: init_params(model, cost.vocab_size, jax.random.key(0)))
    compiled = jax.jit(jax.grad(loss)).lower(params, cost.batch()).compile()
    analysis: Any = compiled.cost_analysis()
    assert 1 < analysis["flops"] / cost.flops() < 1.04


@pytest.mark.parametrize("sentences", [1, 3])
def test_every_place_of_a_batch_is_a_real_token(sentences):
    cost = replace(COST, rows=2, sources=6, targets=7, sentences=sentences)
    batch = cost.batch()
    assert (batch.source_segments > 0).sum() + (batch.target_segments > 0).sum() == cost.places() == 2 * (6 + 7)
    assert all(array.dtype == np.int32 and array.shape in {(2, 6), (2, 7)} for array in batch)
    assert batch.source_tokens.min() > EOS and batch.target_labels.max() < 50
    if sentences == 3:
        assert batch.source_segments[0].tolist() == [1, 1, 2, 2, 3, 3]
        assert batch.target_segments[1].tolist() == [1, 1, 1, 2, 2, 3, 3]
        assert batch.target_positions[1].tolist() == [0, 1, 2, 0, 1, 0, 1]
    first = batch.target_positions == 0
    assert (batch.target_inputs[first] == BOS).all() and first.sum() == 2 * sentences
    assert (batch.target_inputs[:, 1:][~first[:, 1:]] == batch.target_labels[:, :-1][~first[:, 1:]]).all()


def test_two_views_have_twice_the_products():
    assert COST.of_views(TrainingConfig(steps=1, consistency="simcut")).flops() == 2 * COST.flops()


def test_operations_of_decoding_by_hand():
    """Multiplications, each with an addition, one matrix after the other."""
    # Encoder, 4 tokens, 1 layer: four projections 16 × 16; up and down 16 × 32; 4 scores and 4 values of 2 × 8.
    encoder = 4 * (4 * 256 + 2 * 512 + 4 * 16 + 4 * 16)
    cross_keys_and_values = 4 * 2 * 2 * 256  # 4 tokens, 2 layers
    # Decoder, a token in a layer: 6 projections; up and down; scores and values of the source.
    layer = 6 * 256 + 2 * 512 + 2 * 4 * 16
    past = (1 + 2 + 3 + 4 + 5) * 2 * 16  # scores and values of the 5 tokens, in a layer
    decoder = 5 * (2 * layer + 16 * 50) + 2 * past
    assert DECODING.flops(1) == 2 * (encoder + cross_keys_and_values + decoder)
    assert DECODING.flops(5) == 2 * (encoder + cross_keys_and_values + 5 * decoder)


def test_sentences_have_no_special_tokens_and_are_the_same_for_all():
    rows = DECODING.source_tokens()
    assert rows.shape == (3, 4) and rows.min() >= 4 and rows.max() < 50
    assert (rows == DECODING.source_tokens()).all()
