"""The Transformer's invariances: padding, packing, the future, the cache; and its size by arithmetic."""

import itertools
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from attention.masks import Mask
from attention.scores import SCORES
from model.activations import ACTIVATIONS
from model.cache import Cache, branch
from model.config import NORMS, POSITIONS, ModelConfig
from model.layers import Draws
from model.positions import Order
from model.transformer import Tokens, build, init_params
from tests.drawn import drawn_params
from tests.variants import KERNELS_ANYWHERE, variants

VOCAB = 40
SIZES: dict[str, Any] = {
    "d_model": 16,
    "num_heads": 2,
    "head_dim": 6,
    "d_ff": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
CHOICES: dict[str, dict[str, Any]] = {
    "nothing": {},
    **{norm: {"norm": norm} for norm in list(NORMS)[1:]},
    **{positions: {"positions": positions} for positions in list(POSITIONS)[1:]},
    **{score: {"score": score} for score in list(SCORES)[1:]},
    **{activation: {"activation": activation} for activation in list(ACTIVATIONS)[1:]},
    "multi-query": {"key_value_heads": 1},
    "wide values": {"value_dim": 7},
    "gated": {"gated": True},
    "query-key norm": {"query_key_norm": True},
    "head gates": {"head_gates": True},
    "wide encoder": {"encoder_width": 24},
}
VARIANTS = variants(**SIZES)
each_variant = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)


@cache
def make(**changes):
    config = ModelConfig(**(SIZES | changes))
    return nnx.merge(build(config, VOCAB), drawn_params(config, VOCAB))


def tokens(seed, length):
    return np.random.default_rng(seed).integers(4, VOCAB, length)


def row(*sentences, length=12):
    """Sentences packed into one row; few lengths, since every pair of them is another program to compile."""
    arrays = np.zeros((3, 1, length), np.int32)
    start = 0
    for segment, sentence in enumerate(sentences, start=1):
        end = start + len(sentence)
        arrays[:, 0, start:end] = sentence, np.full(len(sentence), segment), np.arange(len(sentence))
        start = end
    return Tokens(*jnp.asarray(arrays))


@jax.jit
def compiled_logits(model, source_row, target_row):
    return model.logits(model(source_row, target_row))


def logits(model, source_row, target_row):
    return np.asarray(compiled_logits(model, source_row, target_row))[0]


@pytest.mark.parametrize("length", [12, pytest.param(5, marks=pytest.mark.slow)])  # another program to compile
@each_variant
def test_a_sentence_means_the_same_alone_and_packed(changes, length):
    """In a row of its own, which may have padding, and beside others, which change nothing bit for bit."""
    model = make(**changes)
    source, target = tokens(0, 5), tokens(1, 4)
    alone = logits(model, row(source, length=length), row(target, length=length))[:4]
    packed = logits(model, row(tokens(2, 3), source), row(tokens(3, 6), target))[6:10]
    np.testing.assert_allclose(packed, alone, atol=1e-5)
    beside, beside_others = (
        logits(model, row(source, tokens(seed, 4)), row(target, tokens(seed + 1, 5)))[:4] for seed in (2, 4)
    )
    np.testing.assert_array_equal(beside, beside_others)


@each_variant
def test_the_future_cannot_change_the_past(changes):
    model, source = make(**changes), row(tokens(0, 5))
    target, other = tokens(1, 6), tokens(1, 6)
    other[4:] = (other[4:] - 3) % (VOCAB - 4) + 4
    first, second = (logits(model, source, row(t)) for t in (target, other))
    np.testing.assert_array_equal(first[:4], second[:4])
    assert not np.allclose(first[4:6], second[4:6])


@each_variant
def test_cached_decoding_equals_teacher_forcing(changes):
    """Two hypotheses part; then both continue the second one, in different ways, and change places as they go."""
    model = make(**changes)
    source, targets = row(tokens(0, 5)), np.stack([tokens(1, 7), tokens(2, 7)])
    targets[0, :3] = targets[1, :3]  # what the first becomes when it branches from the second
    fed = targets.copy()
    fed[0, :3] = tokens(3, 3)
    forced = np.stack([logits(model, source, row(target)) for target in targets])
    cache, step = start_cache(model, source, beams=2, max_length=9), jax.jit(model.decode_step)
    for position in range(7):
        stepped, _, cache = step(jnp.array(fed[None, :, position]), jnp.array([position]), cache)
        if position >= 3:
            np.testing.assert_allclose(stepped[0], forced[:, position], atol=1e-5)
        if position == 2:
            cache = branch(cache, jnp.array([[1, 1]]), jnp.array([position]))
        if position == 4:
            cache = branch(cache, jnp.array([[1, 0]]), jnp.array([position]))
            fed, forced = fed[::-1], forced[::-1]


@partial(jax.jit, static_argnames=("beams", "max_length"))
def start_cache(model, source, *, beams, max_length):
    return Cache.empty(model.encode_for_search(source), beams, max_length)


@jax.jit
def last_weights(model, source, target):
    """The last block's weights on source tokens, averaged over heads."""
    collected: list[jax.Array] = []
    model.decode(target, model.encode(source), source.segments, weights=collected)
    return collected[-1][0].mean(axis=0)


@pytest.mark.slow
@each_variant
def test_what_a_step_sees_of_the_source_is_the_last_blocks_weights(changes):
    model = make(**changes)
    source, target = row(tokens(0, 5), length=8), row(tokens(1, 6), length=6)
    expected = last_weights(model, source, target)
    cache, step = start_cache(model, source, beams=1, max_length=6), jax.jit(model.decode_step)
    for position in range(6):
        _, seen, cache = step(target.ids[:, position : position + 1], jnp.array([position]), cache)
        np.testing.assert_allclose(seen[0, 0], expected[position], atol=1e-5)


def test_parameters_by_arithmetic():
    config = ModelConfig(**SIZES)
    d, width, hidden = 16, 12, 24
    attention = 3 * (d * width + width) + width * d + d
    feed_forward = d * hidden + hidden + hidden * d + d
    norm = 2 * d
    expected = VOCAB * d + 2 * (attention + feed_forward + 2 * norm) + 2 * (2 * attention + feed_forward + 3 * norm)
    expected += 2 * norm  # after the encoder and after the decoder, in pre-norm only
    shapes = jax.eval_shape(lambda: init_params(config, VOCAB, jax.random.key(0)))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == expected


@pytest.mark.parametrize("key", ["query_key_norm", "head_gates", "value_residual"])
def test_attention_of_the_second_block_by_its_formula_in_float64(key):
    config = ModelConfig(**(SIZES | {"key_value_heads": 1, key: True}))
    model: Any = nnx.merge(build(config, VOCAB), drawn_params(config, VOCAB))
    attention, first, segments = model.encoder[1].self_attention, model.encoder[0].self_attention, jnp.ones((1, 4), int)
    x, before = (jax.random.normal(jax.random.key(seed), (1, 4, 16)) for seed in (0, 1))
    found = attention(x, x, Mask(segments, segments), Order(first_values=first.values(before)))

    def dense(layer, x):
        return np.asarray(x[0], np.float64) @ np.asarray(layer.kernel[...]) + np.asarray(layer.bias[...])

    query, keys, value = (dense(layer, x) for layer in (attention.query, attention.key, attention.value))
    query, gates = query.reshape(4, 2, 6), 1
    if key == "query_key_norm":  # g · cosine, with g = scale · √6
        query = query / np.linalg.norm(query, axis=-1, keepdims=True) * attention.norm.scale[...][:, None] * np.sqrt(6)
        keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True) * np.sqrt(6)
    if key == "head_gates":
        gates = 1 / (1 + np.exp(-dense(attention.gate, x)))[..., None]
    if key == "value_residual":
        value = value + float(attention.first_share[...][0]) * (dense(first.value, before) - value)
    weights = np.exp(np.einsum("TNH,SH->TNS", query, keys) / np.sqrt(6))
    heads = gates * (weights / weights.sum(axis=-1, keepdims=True)) @ value
    np.testing.assert_allclose(found, dense(attention.output, heads.reshape(1, 4, 12))[None], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_every_choice_is_another_model_and_every_kernel_the_same():
    source, target = row(tokens(0, 5), length=5), row(tokens(1, 4), length=4)
    shallow = {"encoder_layers": 1, "decoder_layers": 1}  # value_residual begins with the second block
    results = {name: logits(make(**shallow, **changes), source, target)[:4] for name, changes in CHOICES.items()}
    for kernel in KERNELS_ANYWHERE[1:]:
        same = logits(make(**shallow, kernel=kernel), source, target)[:4]
        np.testing.assert_allclose(same, results["nothing"], atol=1e-5)
    for (one, first), (other, second) in itertools.combinations(results.items(), 2):
        assert np.abs(first - second).max() > 1e-3, f"{one} is {other}"


def test_relative_positions_move_with_the_sentence():
    """What acts on attention knows distances only: a sentence means the same 100 tokens later."""
    source, target = row(tokens(0, 5)), row(tokens(1, 4))
    later = [tokens._replace(positions=tokens.positions + 100) for tokens in (source, target)]
    for positions in (name for name, place in POSITIONS.items() if place != "embeddings"):
        model = make(positions=positions)
        np.testing.assert_allclose(logits(model, *later)[:4], logits(model, source, target)[:4], atol=2e-5)
    model = make()
    assert np.abs(logits(model, *later) - logits(model, source, target))[:4].max() > 1e-2


@pytest.mark.parametrize("rates", [{"dropout": 0.5}, {"dropout": 0.0, "attention_dropout": 0.5}], ids=str)
def test_dropout_needs_a_key_and_follows_it(rates):
    model, source, target = make(**rates), row(tokens(0, 5)), row(tokens(1, 4))

    @jax.jit
    def run(key):
        return model(source, target, dropout_key=key)[0, :4]

    first, second = (Draws(jax.random.key(seed)) for seed in (3, 4))
    np.testing.assert_array_equal(run(None), run(None))
    np.testing.assert_array_equal(run(first), run(first))
    assert not np.allclose(run(first), run(second))
    assert not np.allclose(run(first), run(None))


def test_bfloat16_activations_stay_close_to_float32_and_logits_are_float32():
    source, target = row(tokens(0, 5)), row(tokens(1, 4))
    low = make(dtype="bfloat16", matmul_dtype="bfloat16")
    assert jax.eval_shape(low, source, target).dtype == jnp.bfloat16
    scores = logits(low, source, target)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores[:4], logits(make(), source, target)[:4], atol=0.1)
