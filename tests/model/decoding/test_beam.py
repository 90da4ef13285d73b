"""Beam search against enumeration, against a plain-Python beam, and against itself in other company."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.special_tokens import BOS, EOS, PAD
from model.decoding import next_token as candidates
from model.decoding.beam import BeamSearch
from model.decoding.ensemble import mixture
from model.decoding.forced import alignment_weights, token_log_probs
from model.decoding.hypotheses import Sources
from model.decoding.sampling import Independent
from model.decoding.search import search
from model.decoding.settings import Ranking, SearchSettings
from model.transformer import Tokens
from tests.model.oracles import (
    PlainRanking,
    TableModel,
    drawn_transformer,
    examples,
    forced,
    found,
    plain_beam,
    sources,
    trained_transformer,
)

GNMT, LENGTH, NONE = Ranking("gnmt", 1.0), Ranking("length", 0.7), Ranking("gnmt", 0.0)


def beam_search(models, sources, settings, rows=0):
    return search(BeamSearch(settings), models, sources, rows)


def greedy(models, sources, settings, rows=0):
    return search(Independent(settings), models, sources, rows)


def run_search(kind, model, *arguments):
    """The hypotheses of a table as NumPy arrays: picking from JAX arrays compiles a program for every place."""
    return jax.device_get(jax.jit(lambda: kind((model,), *arguments))())


def assert_lists(hypotheses, row, expected, tolerance=1e-5):
    """A row's n-best list begins with these scores and tokens."""
    for place, (score, tokens) in enumerate(expected):
        assert found(hypotheses, row, place) == tokens
        np.testing.assert_allclose(hypotheses.scores[row, place], score, rtol=tolerance, atol=tolerance)


def plain(ranking: Ranking) -> PlainRanking:
    return PlainRanking(ranking.normalization, ranking.length_penalty)


@pytest.mark.parametrize("ranking", [NONE, Ranking("gnmt", 0.6), Ranking("length", 1.5)], ids=str)
def test_a_wide_beam_finds_the_best_of_all_translations(ranking):
    model, vocabulary = TableModel(7), 7
    rows, limits = sources(16), jnp.arange(16) % 4 + 1
    hypotheses = run_search(beam_search, model, Sources(rows, limits), SearchSettings(4, 120, 3, ranking))
    for row, source in enumerate(rows.ids[:, 0].tolist()):
        best = sorted(every_translation(model, source, vocabulary, int(limits[row]), plain(ranking)), reverse=True)[:3]
        assert_lists(hypotheses, row, best)
        assert hypotheses.ended[row, : len(best)].all()


def test_a_wide_beam_finds_the_best_of_all_translations_that_begin_with_a_text():
    """However tokens spell it: a, b and aa are the tokens 4, 5 and 6."""
    letters, model = {4: "a", 5: "b", 6: "aa", EOS: ""}, TableModel(7)
    spelling, rows = np.full((4, 7), -1), sources(16)
    for state, token, following in ((0, 4, 1), (0, 6, 2), (1, 4, 2), (2, 5, 3), *((3, token, 3) for token in letters)):
        spelling[state, token] = following
    with_text = Sources(rows, jnp.full(16, 5), starts=jnp.zeros(16, jnp.int32), spelling=spelling)
    hypotheses = run_search(beam_search, model, with_text, SearchSettings(5, 120, 3, NONE))
    for row, source in enumerate(rows.ids[:, 0].tolist()):
        found_by_all = sorted(every_translation(model, source, 7, 5, plain(NONE)), reverse=True)
        spelled = [each for each in found_by_all if "".join(letters[token] for token in each[1]).startswith("aab")]
        assert_lists(hypotheses, row, spelled[:3])


def every_translation(model, source, vocabulary, limit, ranking):
    for length in range(limit):
        for words in itertools.product(range(EOS + 1, vocabulary), repeat=length):
            tokens = (*words, EOS)
            steps = [model.next_log_probs(source, tokens[:i])[token] for i, token in enumerate(tokens)]
            yield ranking.score(sum(steps), tokens), tokens


@pytest.mark.parametrize(
    ("beam_size", "ranking", "prefix", "at_once"),
    [
        (1, NONE, (), 0),
        (2, GNMT, (7, 5), 0),
        (3, LENGTH, (4,), 8),
        (4, Ranking("gnmt", 2.0), (), 16),
        (4, GNMT, (7,), 1),
    ],
    ids=str,
)
def test_beam_search_agrees_with_a_plain_beam(beam_size, ranking, prefix, at_once):
    """Every hypothesis of the n-best list, whatever its limit, with and without a prefix, and however many rows."""
    model = TableModel(seed=beam_size, eos_logit=5.0)
    rows, limits = sources(32), np.repeat([9, 7, len(prefix) + 2, len(prefix) + 1], 8)
    settings = SearchSettings(9, beam_size, beam_size, ranking)
    all_sources = Sources(rows, jnp.array(limits))
    if prefix:
        all_sources = all_sources._replace(spelling=forced(*prefix), starts=jnp.zeros(32, jnp.int32))
    hypotheses = run_search(beam_search, model, all_sources, settings, at_once)
    for row, source in enumerate(rows.ids[:, 0].tolist()):
        next_log_probs = partial(model.next_log_probs, source)
        expected = plain_beam(next_log_probs, int(limits[row]), beam_size, plain(ranking), beam_size, prefix)
        assert_lists(hypotheses, row, expected)
        for place, (_, tokens) in enumerate(expected):
            assert tokens[: len(prefix)] == prefix
            assert hypotheses.ended[row, place] == (tokens[-1] == EOS)
        assert (hypotheses.lengths[row, len(expected) :] == 0).all()


def test_coverage_prefers_what_has_seen_the_whole_source():
    """The plain beam's coverage is counted from each history; both find other translations than without it."""
    model = TableModel(seed=1, eos_logit=5.0)
    rows = sources(32, length=4)
    ranking, without = Ranking("gnmt", 1.0, coverage_penalty=3.0), GNMT

    def seen(history):
        read = (BOS, *history[:-1])
        return [max(sum(token % 4 == place for token in read), 1e-9) for place in range(4)]

    def run(ranking):
        return run_search(beam_search, model, Sources(rows, jnp.full(32, 9)), SearchSettings(9, 4, 2, ranking))

    hypotheses, others = run(ranking), run(without)
    for row, source in enumerate(rows.ids[:, 0].tolist()):
        next_log_probs = partial(model.next_log_probs, source)
        assert_lists(hypotheses, row, plain_beam(next_log_probs, 9, 4, PlainRanking("gnmt", 1.0, 3.0, seen), 2))
    assert (hypotheses.tokens != others.tokens).any()


def sentences(count: int) -> Tokens:
    """Sentences of two to five tokens, EOS among them."""
    return Tokens.one_per_row(examples(jax.random.key(5), count)[0])


@jax.jit
def log_probs_after(models, source_tokens, inputs):
    """Log-probabilities of the token after each of the inputs, by the models' whole forward pass."""
    source, target = Tokens.one_per_row(source_tokens), Tokens.one_per_row(inputs)
    probabilities = [jax.nn.softmax(model.logits(model(source, target))) for model in models]
    return jnp.log(sum(probabilities) / len(models))


def teacher_forced(models, source_tokens, room):
    """A function from histories to the log-probabilities of the next token, each computed once."""

    @cache
    def next_log_probs(history):
        inputs = jnp.array([[BOS, *history, *[PAD] * (room - 1 - len(history))]])
        return np.asarray(log_probs_after(models, source_tokens, inputs))[0, len(history)]

    return next_log_probs


CASES = {  # a trained model, at two widths; two unlike models together
    "2": (2, lambda: (trained_transformer(),)),
    "5": (5, lambda: (trained_transformer(),)),
    "3, ensemble": (3, lambda: (trained_transformer(), trained_transformer(1, positions="relative", d_model=16))),
}


@pytest.mark.slow
@pytest.mark.parametrize(("beam_size", "make"), CASES.values(), ids=CASES)
def test_a_trained_transformers_beam_agrees_with_a_plain_beam_by_teacher_forcing(beam_size, make):
    models, source_tokens, settings = make(), sentences(6).ids, SearchSettings(8, beam_size, beam_size, GNMT)
    compiled = jax.jit(beam_search, static_argnums=2)
    hypotheses = jax.device_get(compiled(models, Sources(sentences(6), jnp.full(6, 8)), settings))
    for row in range(6):
        next_log_probs = teacher_forced(models, source_tokens[row : row + 1], 8)
        assert_lists(hypotheses, row, plain_beam(next_log_probs, 8, beam_size, plain(GNMT), beam_size), 1e-4)
    rescore = jax.jit(partial(token_log_probs, models))
    for place in range(beam_size):
        log_probs = np.asarray(rescore(source_tokens, hypotheses.tokens[:, place]))
        np.testing.assert_allclose(hypotheses.log_probs[:, place], log_probs.sum(axis=1), rtol=1e-4, atol=1e-4)
        assert ((log_probs != 0) == (np.arange(8) < hypotheses.lengths[:, place : place + 1])).all()


def test_an_ensemble_averages_probabilities():
    logits = [np.random.default_rng(seed).normal(size=(2, 3, 11)) * 3 for seed in (0, 1, 2)]
    probabilities = [np.exp(each) / np.exp(each).sum(axis=-1, keepdims=True) for each in logits]
    mixed = mixture(tuple(jnp.asarray(each, jnp.float32) for each in logits))
    np.testing.assert_allclose(np.exp(mixed), np.mean(probabilities, axis=0), rtol=1e-5)


def test_a_beam_of_one_is_greedy():
    """Compared by log-probabilities, nothing that goes on after an EOS can be better."""
    starts = jnp.where(jnp.arange(16) % 4 == 0, 0, 2)  # every fourth sentence has a prefix
    rows = Sources(sentences(16), jnp.full(16, 10), None, starts, forced(7, 8))
    models, settings = (drawn_transformer(),), SearchSettings(10, 1, 1, NONE)
    results = (jax.jit(kind, static_argnums=2)(models, rows, settings) for kind in (beam_search, greedy))
    for beam, likeliest in zip(*results, strict=True):
        np.testing.assert_allclose(beam, likeliest, rtol=1e-5)


@pytest.mark.slow
def test_soft_alignments_are_the_weights_of_the_last_block_but_one():
    models, source_tokens = (trained_transformer(), trained_transformer(1)), sentences(2).ids
    targets = jnp.array([[5, 6, 7, EOS, PAD], [4, 4, 9, 10, EOS]])
    weights = jax.jit(partial(alignment_weights, models))(source_tokens, targets)
    np.testing.assert_allclose(weights.sum(axis=-1)[1], 1, atol=1e-5)
    np.testing.assert_array_equal(np.asarray(weights) * np.asarray(source_tokens == PAD)[:, None], 0)
    each = [jax.jit(partial(alignment_weights, (model,)))(source_tokens, targets) for model in models]
    np.testing.assert_allclose(weights, (each[0] + each[1]) / 2, atol=1e-6)


SEARCHES = {
    "greedy": partial(greedy, settings=SearchSettings(10, ranking=NONE)),
    "beam": partial(beam_search, settings=SearchSettings(10, beam_size=3, count=2)),
}


@pytest.mark.parametrize("at_once", [0, 2])
@pytest.mark.parametrize("kind", SEARCHES)
def test_company_changes_nothing(kind, at_once):
    """A sentence gets the same tokens and the same score, bit for bit, in every row and beside or after anything."""
    search = jax.jit(partial(SEARCHES[kind], (drawn_transformer(),), rows=at_once))
    rows, limits = sources(8, length=5), jnp.arange(8) + 3
    together = search(Sources(rows, limits))
    order = jnp.array([5, 2, 7, 0, 1, 6, 3, 4])
    shuffled = search(Sources(Tokens.one_per_row(rows.ids[order]), limits[order]))
    one = Tokens.one_per_row(jnp.where((jnp.arange(8) == 2)[:, None], rows.ids, PAD))
    alone = search(Sources(one, limits))
    for one, other, single in zip(*jax.device_get((together, shuffled, alone)), strict=True):
        np.testing.assert_array_equal(one[order], other)
        np.testing.assert_array_equal(one[2], single[2])


@pytest.mark.parametrize("kind", SEARCHES)
def test_rows_without_a_source_hold_nobody_up(kind):
    model = TableModel()
    rows = sources(3)
    rows = rows._replace(segments=rows.segments.at[1:].set(0))
    hypotheses = run_search(SEARCHES[kind], model, Sources(rows, jnp.array([2, 10, 10])))
    jax.effects_barrier()
    assert max(model.steps) <= 1
    assert (hypotheses.lengths[1:] == 0).all()
    assert not hypotheses.ended[1:].any()
    assert (hypotheses.tokens[1:] == PAD).all()


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_translation_without_eos_is_returned_whole(kind):
    model = TableModel(eos_logit=-1e9)
    hypotheses = run_search(SEARCHES[kind], model, Sources(sources(4), jnp.array([1, 4, 7, 10])))
    assert hypotheses.lengths[:, 0].tolist() == [1, 4, 7, 10]
    assert not hypotheses.ended.any()
    for row in range(4):
        assert all(token > EOS for token in found(hypotheses, row))


def test_the_search_stops_when_nothing_can_win():
    """EOS at once has nearly all the probability: the beam must not go on to its limit of ten."""
    model = TableModel(eos_logit=50.0)
    run_search(beam_search, model, Sources(sources(4), jnp.full(4, 10)), SearchSettings(10, 3))
    jax.effects_barrier()
    assert model.steps == [0]


likeliest = jax.jit(candidates.likeliest, static_argnums=3)


@pytest.mark.parametrize(("vocabulary", "count"), [(7, 4), (100, 20), (320, 1), (320, 20), (127, 5)])
def test_the_likeliest_continuations_are_those_of_a_full_sort(vocabulary, count):
    logits = (jax.random.normal(jax.random.key(0), (2, 3, vocabulary)) * 4).at[..., :EOS].add(100)
    log_probs = jnp.array([[-1.0, -2.0, -jnp.inf], [0.0, -30.0, -0.5]])
    totals = np.array(log_probs[..., None] + jax.nn.log_softmax(logits))
    totals[..., :EOS] = -np.inf
    best = likeliest(log_probs, logits, None, count)
    for row in range(2):
        expected = np.argsort(-totals[row].ravel(), kind="stable")[:count]
        np.testing.assert_array_equal(best.parents[row] * vocabulary + best.tokens[row], expected)
        np.testing.assert_allclose(best.log_probs[row], totals[row].ravel()[expected], rtol=1e-5, atol=1e-5)


def test_equal_logits_go_to_the_smaller_id():
    logits = jnp.zeros((1, 1, 640)).at[0, 0, 70].set(1)
    assert likeliest(jnp.zeros((1, 1)), logits, None, 5).tokens.tolist() == [[70, 3, 4, 5, 6]]
