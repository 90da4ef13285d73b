"""The attention weights that are shown are those the model used."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import model.layers
from attention.masks import Mask
from attention.multihead import attend, attention_weights
from model.config import ModelConfig
from model.decoding.forced import compute_attention_weights
from model.layers import MultiHeadAttention
from model.transformer import Tokens, Transformer
from tests.variants import variants

SIZES = ModelConfig(d_model=16, num_heads=2, head_dim=6, d_ff=24, encoder_layers=2, decoder_layers=3)
VARIANTS = {name: replace(SIZES, **changes) for name, changes in variants(**vars(SIZES)).items()}
each_variant = pytest.mark.parametrize("config", VARIANTS.values(), ids=VARIANTS)
VOCAB, S, T = 40, 5, 4


def make(config):
    return Transformer(config, VOCAB, rngs=nnx.Rngs(0))


def tokens(seed, length):
    return jnp.asarray(np.random.default_rng(seed).integers(4, VOCAB, length), jnp.int32)


def test_weights_of_every_layer_and_head_sum_to_one_and_never_see_the_future():
    weights = compute_attention_weights(make(SIZES), tokens(0, S), tokens(1, T))
    shapes = {"encoder": (2, 2, S, S), "decoder": (3, 2, T, T), "encoder_decoder": (3, 2, T, S)}
    assert {name: array.shape for name, array in weights._asdict().items()} == shapes
    for array in weights:
        np.testing.assert_allclose(np.sum(array, axis=-1), 1, atol=1e-6)
    np.testing.assert_array_equal(np.triu(weights.decoder, k=1), 0)
    assert np.all(np.asarray(weights.encoder) > 0) and np.all(np.asarray(weights.encoder_decoder) > 0)


@pytest.mark.parametrize("causal", [False, True])
def test_weights_times_values_are_the_sublayers_output(causal):
    attention = MultiHeadAttention(SIZES, rngs=nnx.Rngs(0))
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6, 16)), jnp.float32)
    segments = jnp.array([[1, 1, 1, 2, 2, 0], [1] * 6])
    collected: list[jax.Array] = []
    output = attention(x, x, Mask(segments, segments, causal), weights=collected)
    heads = jnp.einsum("BNTS,BNSH->BTNH", collected[0], attention.keys_and_values(x).value)
    np.testing.assert_allclose(attention.output(heads.reshape(2, 6, -1)), output, atol=1e-6)


@pytest.mark.slow
@each_variant
def test_weights_are_those_of_the_calls_that_the_model_makes(config, monkeypatch):
    called = []

    def attend_and_note(query, key, value, **rest):
        how_much = {name: rest[name] for name in ("mask", "bias", "score")}
        called.append(np.asarray(attention_weights(query, key, **how_much))[0])
        return attend(query, key, value, **rest)

    transformer = make(config)
    weights = compute_attention_weights(transformer, tokens(0, S), tokens(1, T))
    monkeypatch.setattr(model.layers, "attend", attend_and_note)
    transformer(Tokens.one_per_row(tokens(0, S)[None]), Tokens.one_per_row(tokens(1, T)[None]))
    encoder, decoder, encoder_decoder = called[:2], called[2::2], called[3::2]
    for shown, used in zip(weights, (encoder, decoder, encoder_decoder), strict=True):
        np.testing.assert_allclose(shown, used, atol=1e-6)
