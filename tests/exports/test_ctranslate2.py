"""CTranslate2's log-probabilities beside ours of every kind of model, with norms and biases off their first values."""

from dataclasses import fields, replace
from functools import partial

import ctranslate2
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from common.special_tokens import BOS, EOS
from exports.ctranslate2 import alibi_table, save_model
from exports.formats import find_obstacle
from exports.heads import LONGEST
from model.config import ModelConfig
from model.positions import alibi_bias
from model.transformer import Tokens, build
from tests.drawn import drawn_params
from tests.variants import CHOICES

BASE = ModelConfig(d_model=16, num_heads=4, head_dim=6, d_ff=24, encoder_layers=2, decoder_layers=1, max_positions=64)
VOCABULARY = ["<pad>", "<unk>", "<s>", "</s>", *(f"piece{number}" for number in range(36))]
VOCAB_SIZE = len(VOCABULARY)
WITHOUT_EFFECT = (  # on the numbers of a trained model in float32
    *("kernel", "rematerialize", "dropout", "attention_dropout", "activation_dropout", "source_word_dropout"),
    *("target_word_dropout", "decoder_layer_drop", "dtype", "matmul_dtype"),
)
SIZES = ("d_model", "num_heads", "head_dim", "encoder_layers", "decoder_layers", "d_ff", "max_positions")
CHANGES = {
    **{f"{key}={value}": {key: value} for key, values in CHOICES.items() for value in dict.fromkeys(values)},
    "two groups": {"key_value_heads": 2},
    "narrow values": {"value_dim": 3},
    "rotary, narrow values": {"positions": "rotary", "value_dim": 3, "head_dim": 8},
    "rotary, wide values, one group": {"positions": "rotary", "value_dim": 9, "key_value_heads": 1},
    "much": {"key_value_heads": 2, "value_dim": 3, "score": "general", "norm": "post", "positions": "alibi"},
    "sizes": {"d_model": 24, "num_heads": 3, "head_dim": 10, "encoder_layers": 1, "decoder_layers": 3, "d_ff": 16},
}


@partial(jax.jit, static_argnums=0)
def log_probs(graphdef, params, *sides):
    model = nnx.merge(graphdef, params)
    return jax.nn.log_softmax(model.logits(model(*map(Tokens.one_per_row, sides))), axis=-1)


def ours(config, params, source, target, vocab_size=VOCAB_SIZE):
    """The log-probability of each target token, EOS included."""
    sides = [jnp.array([ids]) for ids in ([*source, EOS], [BOS, *target])]
    return np.asarray(log_probs(build(config, vocab_size), params, *sides))[0][
        np.arange(len(target) + 1), [*target, EOS]
    ]


def theirs(folder, source, target):
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    spelled = [[[VOCABULARY[token] for token in ids]] for ids in (source, target)]
    return np.array(translator.score_batch(*spelled)[0].log_probs)


def test_every_key_of_the_model_is_among_the_cases():
    assert {field.name for field in fields(ModelConfig)} == {*CHOICES, *WITHOUT_EFFECT, *SIZES}


SLOW = ("activation=", "norm=", "key_value_heads=")
SERVED = [
    pytest.param(name, marks=pytest.mark.slow) if name.startswith(SLOW) else name
    for name in CHANGES
    if not find_obstacle("ct2", replace(BASE, **CHANGES[name]))
]


@pytest.mark.parametrize("name", SERVED)
def test_log_probabilities_are_ours(name, tmp_path):
    config = replace(BASE, **CHANGES[name])
    params, rng = drawn_params(config, VOCAB_SIZE), np.random.default_rng(2)
    save_model(tmp_path, config, params, VOCABULARY, "float32")
    source, target = (rng.integers(4, VOCAB_SIZE, length).tolist() for length in (20, 45))
    expected = ours(config, params, source, target)
    np.testing.assert_allclose(theirs(tmp_path, source, target), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"score": "additive"}, "CTranslate2 has no model.score=additive"),
        ({"head_gates": True, "encoder_width": 24}, "no format has model.head_gates and model.encoder_width"),
        ({"activation": "relu_squared"}, "no model.activation=relu_squared, only relu, gelu, silu"),
        ({"score": "general", "positions": "rotary"}, "no model.score=general with model.positions=rotary"),
    ],
)
def test_what_cannot_be_expressed_is_refused(changes, reason):
    assert reason in find_obstacle("ct2", replace(BASE, **changes))


def test_no_other_choices_are_refused():
    refused = {*CHANGES} - {name for name in CHANGES if not find_obstacle("ct2", replace(BASE, **CHANGES[name]))}
    keys = {"query_key_norm=True", "head_gates=True", "value_residual=True", "encoder_width=24"}
    assert refused == {"score=additive", "activation=relu_squared", *keys}


def test_buckets_of_alibi_are_its_distances():
    query, heads = 5, 4
    expected = np.asarray(alibi_bias(jnp.array([[query]]), jnp.arange(20)[None], heads))[0, :, 0]
    for causal in (True, False):
        table, keys = alibi_table(heads, causal=causal), range(query + 1 if causal else 20)
        buckets = [abs(query - key) + (2 * LONGEST if key > query else 0) for key in keys]
        np.testing.assert_array_equal(table[buckets].T, expected[:, : len(keys)])


def test_int8_is_small_and_near(tmp_path):
    config = replace(BASE, d_model=64, d_ff=256, positions="rotary")
    params, sizes = drawn_params(config, VOCAB_SIZE), []
    for quantization in ("float32", "int8"):
        save_model(tmp_path, config, params, VOCABULARY, quantization)
        sizes.append((tmp_path / "model.bin").stat().st_size)
    assert sizes[1] < 0.4 * sizes[0]
    found, expected = theirs(tmp_path, [5, 6, 7], [8, 9]), ours(config, params, [5, 6, 7], [8, 9])
    assert 1e-5 < np.abs(found - expected).max() < 1.0
