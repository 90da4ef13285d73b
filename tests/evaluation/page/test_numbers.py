"""The page's model in JavaScript and the model in JAX: the same text, tokens, log-probabilities and translations."""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from common.special_tokens import BOS, EOS
from data.config import TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from evaluation.faithfulness.attribution import attribute, vectors_of_heads
from evaluation.faithfulness.heads import Head, without_head
from evaluation.page.pack import pack_run
from evaluation.translate import read
from model.decoding.forced import compute_attention_weights, token_log_probs
from model.transformer import Tokens
from tests.drawn import drawn_params, make_ending
from tests.evaluation.conftest import SENTENCES
from tests.evaluation.page.node import UNCHANGED, ask, rounded
from tests.variants import variants

HOSTILE = [
    *("HELLO WORLD, I AM HERE. AND i TOO", "ΑΣ ΣΟΦΟΣ ΔΡΟΜΟΣ", "İSTANBUL ÇOK", "ǅEMPER ǄABCDE"),
    *("  Tom \u3000 \x1f Ana\ufeff ", "Tom\u200bruns \u00adhere \u2066now", "日本語 🎉 n\ufe0f 👩\u200d👧"),
    *("e\u0301\u0327" * 9, "▁Tom ▁", "<s></s> <0x41> <2es>", "\ufffd\x00a", "</script><!--", "a" * 200),
    *("\u034f", "", "\uffff\U000e0001."),
]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_text_is_read_encoded_and_decoded_as_sentencepiece_does(translator, params, tmp_path, kind):
    config = TokenizerConfig(type=kind, vocab_size=300)
    tokenizer = Tokenizer(train(Pairs(SENTENCES, SENTENCES), config))
    run = pack_run("run", [replace(translator, tokenizer=tokenizer)], kind, params[0], 32, [])
    texts = [read(line) for line in [*HOSTILE, *SENTENCES]]
    draw = np.random.default_rng(0)
    ids = [draw.integers(0, 300, 12).tolist() for _ in range(100)]
    ids = [[token for token in each if token != 1] for each in ids]  # no search gives UNK
    asked = [{"ask": "read", "line": line} for line in [*HOSTILE, *SENTENCES]]
    asked += [{"ask": "encode", "text": text} for text in texts]
    asked += [{"ask": "decode", "ids": each} for each in ids]
    found = ask(run, tmp_path, *asked)
    assert found == [*texts, *tokenizer.encode(texts), *replace(translator, tokenizer=tokenizer).spell(ids)]


@pytest.mark.parametrize("name", variants())
def test_log_probabilities_of_every_kind_of_model(translator, tmp_path, name):
    sizes = {"d_model": 32, "num_heads": 4, "head_dim": 8, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 2}
    config = replace(translator.models[0], **(variants(**sizes)[name] | {"kernel": "definition"}))
    # Of larger parameters, some scores are so large that float32 itself is 1e-4 off.
    params = jax.tree.map(lambda array: 0.6 * array, drawn_params(config, translator.tokenizer.vocab_size))
    of_model = replace(translator, models=(config,))
    draw = np.random.default_rng(1)
    source, target = ([*draw.integers(4, 300, length).tolist(), EOS] for length in (9, 12))
    model = nnx.merge(of_model.graphdefs[0], params)
    expected = token_log_probs((model,), jnp.array([source]), jnp.array([target]))[0]
    asked = forced(source, target), {"ask": "remainder", "source": source, "target": target}
    found, remainder = ask(pack_run("run", [of_model], "unigram", params, 32, []), tmp_path, *asked)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert remainder < 1e-9  # what heads add for all keys, and the bias, is what attention adds


def forced(source, target, **changes):
    return {"ask": "logProbs", "source": source, "target": target, "changes": UNCHANGED | changes}


@pytest.mark.parametrize("bits", [8, 16])
def test_fewer_bits_are_a_model_with_rounded_parameters(translator, params, tmp_path, bits):
    source, target = [20, 30, 40, EOS], [50, 60, EOS]
    model = nnx.merge(translator.graphdefs[0], rounded(params[0], bits))
    expected = token_log_probs((model,), jnp.array([source]), jnp.array([target]))[0]
    [found] = ask(pack_run("run", [translator], "unigram", params[0], bits, []), tmp_path, forced(source, target))
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


BY_LENGTH = {"normalization": "length", "length_penalty": 0.6, "coverage_penalty": 0.3}


@pytest.mark.parametrize(("beam", "changes"), [(1, {}), (4, {}), (4, BY_LENGTH)])
def test_translations_of_500_sentences(translator, params, tmp_path, beam, changes):
    """All of the n best, some of which end at the limit."""
    params = jax.tree.map(jnp.asarray, params[0])
    make_ending(params, 0.5 if beam == 1 else 1.0, 1.0)
    limits = {"max_length_factor": 0.5, "max_length_extra": 1}
    decoding = replace(translator.decoding, beam_size=beam, **limits, **changes)
    searching = replace(translator, decoding=decoding)
    draw = np.random.default_rng(2)
    sources = [draw.integers(4, 300, draw.integers(1, 12)).tolist() for _ in range(500)]
    expected = searching.search((params,), sources, beam)
    question = {"ask": "search", "beam": beam, "prefix": [], "changes": UNCHANGED}
    asked = [question | {"source": [*source, EOS]} for source in sources]
    found = ask(pack_run("run", [searching], "unigram", params, 32, []), tmp_path, *asked)
    assert {each.ended for hypotheses in expected for each in hypotheses} == {True, False}
    for ours, theirs in zip(expected, found, strict=True):
        assert [[*each.tokens, *[EOS] * each.ended] for each in ours] == [each["tokens"] for each in theirs]
        for each, other in zip(ours, theirs, strict=True):
            assert (other["logProb"], other["score"]) == pytest.approx((each.log_prob, each.score), abs=2e-5)


@pytest.fixture(scope="module")
def looked(translator, tmp_path_factory):
    """A model of two layers with grouped heads, what JAX says of a pair, and the page's packed run."""
    config = replace(translator.models[0], num_heads=4, key_value_heads=2, encoder_layers=2, decoder_layers=2)
    of_model, params = replace(translator, models=(config,)), drawn_params(config, 300)
    return of_model, params, pack_run("run", [of_model], "unigram", params, 32, []), tmp_path_factory.mktemp("page")


SOURCE, TARGET = [20, 30, 40, 50, EOS], [60, 70, 80, EOS]


def test_weights_norms_and_gradients_are_those_of_heat_maps(looked):
    of_model, params, run, folder = looked
    model = nnx.merge(of_model.graphdefs[0], params)
    weights = compute_attention_weights(model, jnp.array(SOURCE), jnp.array([BOS, *TARGET[:-1]]))
    attributions = attribute(model, jnp.array(SOURCE), jnp.array(TARGET))
    asked = {"source": SOURCE, "target": TARGET}
    sight, gradient = ask(run, folder, {"ask": "look", **asked}, {"ask": "gradient", **asked})
    uses = sight["uses"]
    for layer in range(2):
        np.testing.assert_allclose(uses[layer]["weights"], weights.encoder[layer], atol=1e-5)
        for head, rows in enumerate(uses[2 + layer]["weights"]):
            for row, values in enumerate(rows):
                np.testing.assert_allclose(values, weights.decoder[layer, head, row, : row + 1], atol=1e-5)
        np.testing.assert_allclose(uses[4 + layer]["weights"], weights.encoder_decoder[layer], atol=1e-5)
        np.testing.assert_allclose(uses[4 + layer]["norms"]["all"], attributions.norms[layer], atol=1e-5)
    np.testing.assert_allclose(gradient, attributions.gradient, atol=1e-4)


def test_a_cut_head_is_one_without_its_rows_of_the_output_projection(looked):
    of_model, params, run, folder = looked
    cut = without_head(params, Head("decoder", "cross_attention", 1, 2), 4)
    expected = token_log_probs((nnx.merge(of_model.graphdefs[0], cut),), jnp.array([SOURCE]), jnp.array([TARGET]))[0]
    [found] = ask(run, folder, forced(SOURCE, TARGET, cut=["decoder.cross_attention.1.2"]))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_without_the_root_of_h_scores_are_dot_products(looked):
    of_model, params, run, folder = looked
    products = replace(of_model, models=(replace(of_model.models[0], score="dot_product"),))
    expected = token_log_probs((nnx.merge(products.graphdefs[0], params),), jnp.array([SOURCE]), jnp.array([TARGET]))[0]
    [found] = ask(run, folder, forced(SOURCE, TARGET, unscaled=True))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_cell_shows_how_its_weight_comes_about(looked):
    """From the numbers shown: q · k / √H, the softmax of the scores of all keys, and the sum of the weighted values.

    Weights that are set stay, and the others share the rest as before.
    """
    _, _, run, folder = looked
    place = {"stack": "decoder", "use": "cross_attention", "layer": 1}
    cell_of = {"ask": "cell", "place": place, "head": 3, "row": 2}
    look: dict[str, Any] = {"ask": "look", "source": SOURCE, "target": TARGET}
    changes = UNCHANGED | {"weights": {f"decoder.cross_attention.1.3.2.{key}": 0.125 + 0.625 * key for key in (0, 1)}}
    keys = range(len(SOURCE))
    asked = [look, *[cell_of | {"key": key} for key in keys], look | {"changes": changes}, cell_of | {"key": 1}]
    _, *cells, _, changed = ask(run, folder, *asked)
    scores = [np.dot(cell["query"], cell["key"]) / math.sqrt(8) for cell in cells]
    weights = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(cells[0]["weights"], weights, atol=1e-9)
    values = np.array([cell["value"] for cell in cells])
    np.testing.assert_allclose(cells[0]["output"], weights @ values, atol=1e-9)
    rest = weights[2:] * 0.125 / weights[2:].sum()
    np.testing.assert_allclose(changed["weights"], [0.125, 0.75, *rest], atol=1e-9)


def test_the_share_of_the_source_is_that_of_jax_and_0_if_all_heads_over_it_are_cut(looked):
    of_model, params, run, folder = looked
    model, inputs = nnx.merge(of_model.graphdefs[0], params), jnp.array([BOS, *TARGET[:-1]])
    weights = compute_attention_weights(model, jnp.array(SOURCE), inputs)
    source, target = (Tokens.one_per_row(jnp.asarray(ids)[None]) for ids in (SOURCE, inputs))
    encoded, x = model.encode(source), model.embedding(target.ids, target.positions, None)
    expected = jnp.zeros(len(TARGET))
    for layer, block in enumerate(model.decoder):
        counts, x = counted(block.self_attention, block.residuals[0].enter(x), weights.decoder[layer], x)
        expected = (counts[:, 1:] + jnp.diag(counts[:, 0])) @ expected
        counts, x = counted(block.cross_attention, encoded, weights.encoder_decoder[layer], x)
        expected = counts[:, 0] * expected + counts[:, 1:].sum(axis=1)
        x = x + block.feed_forward(block.residuals[2].enter(x))
    look = {"ask": "look", "source": SOURCE, "target": TARGET}
    none = [f"decoder.cross_attention.{layer}.{head}" for layer in range(2) for head in range(4)]
    whole, without = ask(run, folder, look, look | {"changes": UNCHANGED | {"cut": none}})
    np.testing.assert_allclose(whole["shares"], expected, atol=1e-4)
    assert without["shares"] == [0] * len(TARGET)


def counted(attention, memory, weights, x):
    """The shares of the residual stream and then of each key (docs/page.md), and the output of pre-norm attention."""
    parts = jnp.einsum("NTS,NSD->TSD", weights, vectors_of_heads(attention, memory))
    output = x[0] + parts.sum(axis=1) + attention.output.bias[...]
    without = output[:, None] - jnp.concatenate([x[0][:, None], parts], axis=1)
    counts = jnp.maximum(0, jnp.abs(output).sum(axis=-1, keepdims=True) - jnp.abs(without).sum(axis=-1))
    return counts / counts.sum(axis=1, keepdims=True), output[None]


def test_a_prefix_that_is_given_stays_and_counts(looked):
    _, _, run, folder = looked
    question = {"ask": "search", "source": SOURCE, "beam": 3, "prefix": [99, 98], "changes": UNCHANGED}
    [found] = ask(run, folder, question)
    assert all(each["tokens"][:2] == [99, 98] for each in found) and len(found) == 3
    [first] = ask(run, folder, forced(SOURCE, found[0]["tokens"]))
    assert found[0]["logProb"] == pytest.approx(sum(first), abs=1e-9)
