"""Attributions, erasure and heads: against sums in NumPy, finite differences, SciPy, and parts of the model itself."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sacrebleu.metrics.bleu import BLEU
from scipy.stats import spearmanr

from common.special_tokens import EOS, PAD
from evaluation.faithfulness.attribution import attribute, gradient_times_input, rollout
from evaluation.faithfulness.erasure import Studied, rank_correlation, same_first, study
from evaluation.faithfulness.heads import changes_without, heads_of, without_head
from evaluation.forced_scores import spell_words
from evaluation.sentences import Sentence
from evaluation.translate import Translator
from model.decoding.forced import AttentionWeights, decoder_inputs, token_log_probs
from model.transformer import Tokens
from tests.conftest import WORDS
from tests.drawn import drawn_params
from tests.model.oracles import drawn_transformer

SOURCE, TARGET = jnp.array([5, 6, 7, 8, EOS, PAD]), jnp.array([9, 10, 11, EOS, PAD])


@pytest.fixture(scope="module")
def model():
    return drawn_transformer(encoder_layers=2, decoder_layers=2, num_heads=4, key_value_heads=2)


def parts(model):
    """The encoder's output, and what the decoder's first encoder-decoder attention reads and adds."""
    source, inputs = Tokens.one_per_row(SOURCE[None]), decoder_inputs(TARGET[None])
    seen, attention = [], model.decoder[0].cross_attention
    attend = type(attention).__call__

    def watched(self, *arguments, **options):
        seen.append(attend(self, *arguments, **options))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(attention), "__call__", watched)
        encoded = model.encode(source)
        model.decode(inputs, encoded, source.segments)
    return encoded, seen[len(model.encoder) + 1][0]


def test_norms_are_those_of_vectors_whose_sum_is_the_attentions_output(model):
    found = attribute(model, SOURCE, TARGET)
    encoded, output = parts(model)
    attention = model.decoder[0].cross_attention
    value = np.repeat(np.asarray(attention.keys_and_values(encoded).value[0], np.float64), 2, axis=0)
    kernel = np.asarray(attention.output.kernel[...], np.float64).reshape(4, value.shape[-1], -1)
    added = np.einsum("NTS,NSU,NUD->TSD", np.asarray(found.weights[0], np.float64), value, kernel)
    np.testing.assert_allclose((added.sum(axis=1) + attention.output.bias[...])[:4], output[:4], atol=1e-5)
    np.testing.assert_allclose(found.norms[0], np.linalg.norm(added, axis=-1), atol=1e-5)


def test_rollout_is_the_product_of_layers_with_their_residuals():
    rng = np.random.default_rng(0)
    shapes = (2, 3, 4, 4), (2, 3, 5, 5), (2, 3, 5, 4)
    weights = [rng.dirichlet(np.ones(shape[-1]), shape[:-1]) for shape in shapes]
    encoder, past, source = (each.mean(axis=1) for each in weights)
    below = (np.eye(4) + encoder[1]) @ (np.eye(4) + encoder[0]) / 4
    first = source[0] @ below / 2
    second = (np.eye(5) + past[1]) @ first / 4 + source[1] @ below / 2
    np.testing.assert_allclose(rollout(AttentionWeights(*map(jnp.asarray, weights))), second, rtol=1e-5)


def test_gradient_times_input_is_what_shrinking_an_embedding_costs(model):
    source, inputs = Tokens.one_per_row(SOURCE[None]), decoder_inputs(TARGET[None])
    with jax.enable_x64(True):
        model = nnx.merge(nnx.graphdef(model), jax.tree.map(partial(jnp.asarray, dtype=jnp.float64), nnx.state(model)))
        found = gradient_times_input(model, source, inputs, TARGET)
        embedded = model.embedding(source.ids, source.positions, None)

        def log_probs(place, change):
            changed = embedded.at[0, place].multiply(1 + change)
            decoded = model.decode(inputs, model.encode(source, embedded=changed), source.segments)
            return jax.nn.log_softmax(model.logits(decoded[0]))[jnp.arange(4), TARGET[:4]]

        for place in range(5):
            expected = (log_probs(place, 1e-3) - log_probs(place, -1e-3)) / 2e-3
            np.testing.assert_allclose(found[:4, place], expected, atol=2e-3)
    assert not np.asarray(found)[:, 5].any()  # padding


def test_effects_are_what_translations_lose_without_a_word(translator, params):
    tokenizer = translator.tokenizer
    source, target = tokenizer.encode(["Tom eats here there.", "Ana runs."])
    [studied] = study(translator, params[0], [(source, target)])
    words = [[span for _, span in spell_words(side, tokenizer)] for side in (source, target)]
    model = nnx.merge(translator.graphdefs[0], params[0])

    def log_probs(tokens):
        return token_log_probs((model,), jnp.array([[*tokens, EOS]]), jnp.array([[*target, EOS]]))[0]

    def losses(put):
        for span in words[0]:
            lost = log_probs(source) - log_probs([*source[: span.start], *put * len(span), *source[span.stop :]])
            yield [float(sum(lost[place] for place in span)) for span in words[1]]

    said = dict(zip(studied.methods, studied.attributed, strict=True))
    np.testing.assert_allclose(studied.effects.T, list(losses([])), atol=1e-5)
    np.testing.assert_allclose(said["hidden from attention"].T, list(losses([PAD])), atol=1e-5)
    np.testing.assert_allclose(said["layer 1, mean of heads"], (said["layer 1, head 1"] + said["layer 1, head 2"]) / 2)


def test_agreement_is_spearmans_and_of_the_largest():
    rng = np.random.default_rng(1)
    effects, attributed = rng.normal(size=(3, 6)), rng.integers(4, size=(2, 3, 6)).astype(float)
    attributed[1] = 1
    studied = Studied(effects, attributed, ["ties", "constant"])
    expected = np.mean([spearmanr(*rows).statistic for rows in zip(effects, attributed[0], strict=True)])
    assert rank_correlation(studied).tolist() == pytest.approx([float(expected), 0])
    same = np.mean([effects[word].argmax() == attributed[0, word].argmax() for word in range(3)])
    np.testing.assert_allclose(same_first(studied), [same, np.mean(effects.argmax(-1) == 0)])


def test_a_cut_head_adds_nothing_and_the_others_what_they_did(model):
    graphdef, params = nnx.graphdef(model), nnx.to_pure_dict(nnx.state(model, nnx.Param))
    heads = [head for head in heads_of(model.config) if (head.use, head.layer) == ("cross_attention", 0)]
    assert len(heads_of(model.config)) == 3 * 2 * 4 and len(heads) == 4
    whole, bias = parts(model)[1], model.decoder[0].cross_attention.output.bias[...]
    without = [parts(nnx.merge(graphdef, without_head(params, head, 4)))[1] for head in heads]
    np.testing.assert_allclose(sum(whole - each for each in without) + bias, whole, atol=1e-5)
    assert all(abs(whole - each).max() > 1e-3 for each in without)


class Spaced(Translator):
    """Spells each token as a word: four in a row are what BLEU counts."""

    def spell(self, targets):
        return [" ".join(map(str, tokens)) for tokens in targets]


def test_what_a_head_is_worth_is_the_change_of_bleu(translator):
    spaced = Spaced(translator.models, translator.tokenizer, translator.decoding, translator.usual)
    params = drawn_params(translator.models[0], translator.tokenizer.vocab_size)
    lines = [" ".join(WORDS[start : start + 5]) + "." for start in range(0, 40, 5)]

    def translations(params):
        return [each.text for each in spaced.translate([params], lines)]

    whole = translations(params)
    sentences = [Sentence(line, [text], "", [], 0.0, 0.0, True, 1) for line, text in zip(lines, whole, strict=True)]
    found = dict(changes_without(spaced, params, sentences, ""))
    bleu = [BLEU().corpus_score(translations(without_head(params, head, 2)), [whole]).score for head in found]
    assert [100 + each.value for each in found.values()] == pytest.approx(bleu) and len(set(bleu)) > 1
