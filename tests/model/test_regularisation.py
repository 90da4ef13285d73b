"""Word dropout, activation dropout and LayerDrop: what is dropped, how often, and that nothing is without a key."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from common.special_tokens import BOS, EOS, PAD, TAGS
from model.config import ModelConfig
from model.embedding import Embedding, hide
from model.layers import Draws, FeedForward, skip_sentences, split_key
from model.positions import sinusoidal_positions
from model.transformer import Tokens, Transformer, build
from tests.drawn import drawn_params

VOCAB, KEY = 40, Draws(jax.random.key(1))
CONFIG = ModelConfig(d_model=8, num_heads=2, head_dim=4, d_ff=16, encoder_layers=1, decoder_layers=2, dropout=0.0)
RATES = ("activation_dropout", "source_word_dropout", "target_word_dropout", "decoder_layer_drop")


def model_with(**changes) -> Transformer:
    config = replace(CONFIG, **changes)
    return nnx.merge(build(config, VOCAB), drawn_params(config, VOCAB))


@jax.jit
def apply(model, source, target, key=None):
    return model(source, target, dropout_key=key)


def tokens(seed, rows=3):
    """Rows of two sentences, of 3 and 4 tokens, and padding."""
    segments = jnp.tile(jnp.array([1] * 3 + [2] * 4 + [0]), (rows, 1))
    ids = jax.random.randint(jax.random.key(seed), segments.shape, TAGS[-1] + 1, VOCAB)
    return Tokens(jnp.where(segments > 0, ids, PAD), segments, jnp.tile(jnp.array([0, 1, 2, 0, 1, 2, 3, 0]), (rows, 1)))


def test_words_are_hidden_at_the_rate_and_special_tokens_never():
    ids = jnp.tile(jnp.arange(VOCAB), (5000, 1))
    hidden = np.asarray(hide(ids, 0.15, KEY) == PAD)
    assert not hidden[:, [BOS, EOS, *TAGS]].any()
    words = hidden[:, TAGS[-1] + 1 :]
    assert words.mean() == pytest.approx(0.15, abs=4 * np.sqrt(0.15 * 0.85 / words.size))
    assert np.abs(words.mean(axis=0) - 0.15).max() < 5 * np.sqrt(0.15 * 0.85 / 5000)  # every place alike
    assert np.abs(np.corrcoef(words.T) - np.eye(words.shape[1])).max() < 5 / np.sqrt(5000)  # and for itself
    np.testing.assert_array_equal(hide(ids, 0.15, None), ids)
    np.testing.assert_array_equal(hide(ids, 0.0, KEY), ids)


def test_a_hidden_word_keeps_its_place_and_has_no_embedding():
    embedding = Embedding(CONFIG, VOCAB, rngs=nnx.Rngs(0))
    positions = jnp.arange(5)[None]
    embedded = embedding(jnp.array([[7, PAD, 9, PAD, 7]]), positions, None)
    places = sinusoidal_positions(positions, CONFIG.d_model)
    np.testing.assert_array_equal(embedded[0, [1, 3]], places[0, [1, 3]])
    assert not np.allclose(embedded[0, 0], places[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("side", ["source", "target"])
def test_word_dropout_hides_words_of_its_side_alone(side):
    """The model that hides words is the one that reads hidden words, with the same draws and nothing else changed."""
    source, target = tokens(0), tokens(1)
    found = apply(model_with(**{f"{side}_word_dropout": 0.5}), source, target, KEY)
    index, layers = {"source": (0, CONFIG.encoder_layers), "target": (1, CONFIG.decoder_layers)}[side]
    word_key = split_key(split_key(KEY, 2)[index], layers + 2)[-1]  # after blocks and embedding
    sides = {"source": source, "target": target}
    sides[side] = sides[side]._replace(ids=hide(sides[side].ids, 0.5, word_key))
    np.testing.assert_allclose(found, apply(model_with(), **sides), atol=1e-6)
    assert not np.allclose(found, apply(model_with(), source, target))


def test_without_a_key_nothing_is_dropped():
    source, target = tokens(0), tokens(1)
    dropping = model_with(**dict.fromkeys(RATES, 0.9))
    np.testing.assert_array_equal(apply(dropping, source, target), apply(model_with(), source, target))


def test_neighbours_and_padding_stay_invisible():
    source, target, other = tokens(0), tokens(1), tokens(2)
    model, second = model_with(**dict.fromkeys(RATES, 0.4)), source.segments != 1
    before = apply(model, source, target, KEY)
    changed = (
        side._replace(ids=jnp.where(second, other.ids + (side.segments == 0), side.ids)) for side in (source, target)
    )
    after = apply(model, *changed, KEY)
    np.testing.assert_allclose(after[:, :3], before[:, :3], atol=1e-6)
    assert not np.allclose(after[:, 3:7], before[:, 3:7])


def test_activation_dropout_zeroes_hidden_units_and_scales_the_others():
    config = replace(CONFIG, d_ff=8, activation_dropout=0.25)
    layer = FeedForward(config, rngs=nnx.Rngs(0))
    layer.up.kernel[...], layer.up.bias[...], layer.down.kernel[...] = jnp.zeros((8, 8)), jnp.ones(8), jnp.eye(8)
    output = np.asarray(layer(jnp.zeros((1, 20_000, 8)), KEY))
    assert set(np.unique(output)) == {0.0, np.float32(1 / 0.75)}
    assert (output == 0).mean() == pytest.approx(0.25, abs=0.005)


def test_a_sentence_skips_a_block_as_a_whole_and_for_itself():
    segments = jnp.tile(jnp.array([1, 1, 2, 2, 2, 3, 0, 0]), (4000, 1))
    before, after = jnp.zeros((4000, 8, 1)), jnp.ones((4000, 8, 1))
    taken = np.asarray(skip_sentences(before, after, segments, 0.3, KEY))[..., 0]
    first, second, third = taken[:, :2], taken[:, 2:5], taken[:, 5:6]
    for sentence in (first, second, third):
        assert (sentence == sentence[:, :1]).all()
    starts = taken[:, [0, 2, 5]]
    assert (starts == 0).mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / starts.size))
    assert np.abs(np.corrcoef(starts.T) - np.eye(3)).max() < 5 / np.sqrt(4000)
    assert len(np.unique(taken[:, 0])) == 2  # rows draw for themselves, too


@pytest.mark.slow
def test_a_decoder_that_skips_every_block_is_its_embedding_and_its_blocks_get_no_gradient():
    source, target = tokens(0), tokens(1)
    config = replace(CONFIG, decoder_layer_drop=1 - 1e-7)
    graphdef, params = build(config, VOCAB), drawn_params(config, VOCAB)
    model = nnx.merge(graphdef, params)
    found = apply(model, source, target, KEY)
    expected = model.final_norms[1](model.embedding(target.ids, target.positions, None))
    real = np.asarray(target.segments > 0)
    np.testing.assert_allclose(np.asarray(found)[real], np.asarray(expected)[real], atol=1e-6)
    gradient = jax.grad(lambda p: jnp.sum(apply(nnx.merge(graphdef, p), source, target, KEY)[real] ** 2))(params)
    assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient["decoder"]))
    assert np.asarray(gradient["embedding"]["table"]).any()
