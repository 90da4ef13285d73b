"""Draws have the model's frequencies, are cut as asked, and depend on key, number and sentence alone."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from common.special_tokens import BOS, EOS, PAD, UNK
from model.decoding.hypotheses import Hypotheses, Sources
from model.decoding.sampling import Independent, draw, in_nucleus
from model.decoding.search import search
from model.decoding.settings import Sampling, SearchSettings
from model.transformer import Tokens
from tests.model.oracles import VOCABULARY, TableModel, forced, found, sources


def distribution(logits: Any, sampling: Sampling) -> Any:
    """What tokens should be drawn from, in float64, by sorting."""
    weights: Any = np.asarray(logits, np.float64) / sampling.temperature
    weights[:EOS] = -np.inf
    order = np.argsort(-weights)
    if sampling.top_k:
        weights[order[sampling.top_k :]] = -np.inf
    probabilities = np.exp(weights - weights.max()) / np.exp(weights - weights.max()).sum()
    before = np.cumsum(probabilities[order]) - probabilities[order]
    probabilities[order[before >= sampling.top_p]] = 0
    return probabilities / probabilities.sum()


@pytest.mark.parametrize(
    "sampling",
    [Sampling(), Sampling(temperature=2.0), Sampling(top_k=3), Sampling(top_p=0.7), Sampling(0.7, 6, 0.9)],
    ids=str,
)
def test_frequencies_are_the_probabilities(sampling):
    """20,000 draws: each count within five standard deviations, and nothing that was cut off."""
    count = 20_000
    logits = np.random.default_rng(3).normal(size=VOCABULARY).astype(np.float32) * 1.5
    log_probs, tokens = draw(jnp.tile(logits, (1, count, 1)), None, jax.random.split(jax.random.key(0), 1), sampling)
    probabilities = distribution(logits, sampling)
    counts = np.bincount(np.asarray(tokens[0]), minlength=VOCABULARY)
    deviations = np.sqrt(count * probabilities * (1 - probabilities))
    assert (np.abs(counts - count * probabilities) <= 5 * deviations).all()
    assert (counts[probabilities == 0] == 0).all()
    np.testing.assert_allclose(log_probs[0], jax.nn.log_softmax(logits)[tokens[0]], rtol=1e-5)


@pytest.mark.slow
def test_whole_translations_come_as_often_as_the_model_says():
    """Of one sentence, with a limit of two tokens: all of the 9 + 81 that may be drawn, each by its probability."""
    model, count = TableModel(), 8192
    model.table = model.table / 5
    rows, settings = sources(1), SearchSettings(2, count=count)
    sentence = Sources(rows, jnp.array([2]), jnp.array([7], jnp.uint32))
    drawn = jax.jit(lambda: search(Independent(settings, jax.random.key(1)), (model,), sentence))()
    counts: dict[tuple[int, ...], int] = {}
    for place in range(count):
        tokens = tuple(np.asarray(drawn.tokens)[0, place, : int(drawn.lengths[0, place])].tolist())
        counts[tokens] = counts.get(tokens, 0) + 1
    source, total = int(rows.ids[0, 0]), 0.0
    for first in range(EOS, VOCABULARY):
        for second in range(EOS, VOCABULARY) if first != EOS else [None]:
            tokens = (first,) if second is None else (first, second)
            steps = [allowed_probabilities(model, source, tokens[:place])[token] for place, token in enumerate(tokens)]
            probability = float(np.prod(steps))
            total += probability
            deviation = np.sqrt(count * probability * (1 - probability))
            assert abs(counts.get(tokens, 0) - count * probability) <= 5 * deviation + 1
    assert total == pytest.approx(1)


def allowed_probabilities(model: TableModel, source: int, history: tuple[int, ...]) -> np.ndarray:
    probabilities = np.exp(model.next_log_probs(source, history).astype(np.float64))
    probabilities[[PAD, UNK, BOS]] = 0
    return probabilities / probabilities.sum()


def run(keys: int = 0, rows: Any = slice(None), at_once: int = 0, **changes: Any) -> Hypotheses:
    model = TableModel(eos_logit=4.0)
    options: dict[str, Any] = {"count": 3} | changes
    numbers = jnp.arange(8, dtype=jnp.uint32)[rows] + 100
    method = Independent(SearchSettings(7, **options), jax.random.key(keys))
    sentences = Sources(Tokens.one_per_row(sources(8).ids[rows]), jnp.full(8, 7)[rows], numbers)
    drawn: Hypotheses = jax.jit(lambda: search(method, (model,), sentences, at_once))()
    return drawn


def test_a_seed_draws_the_same_again_and_another_draws_otherwise():
    first, again, other = run(), run(), run(keys=1)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert (first.tokens != other.tokens).any()
    assert len({found(first, 0, place) for place in range(3)}) > 1


def test_draws_do_not_depend_on_company_or_place():
    rows = jnp.array([6, 3, 3])
    for together, apart in zip(run(at_once=3), run(rows=rows), strict=True):
        np.testing.assert_array_equal(together[rows], apart)


def test_a_prefix_is_kept_by_every_draw():
    model = TableModel(eos_logit=4.0)
    starts = jnp.array([0, 0, 2, 2])  # two sentences have it
    settings = SearchSettings(7, count=5, sampling=Sampling(top_k=2))
    sentences = Sources(sources(4), jnp.full(4, 7), jnp.arange(4, dtype=jnp.uint32), starts, forced(9, 4))
    drawn = jax.jit(lambda: search(Independent(settings, jax.random.key(0)), (model,), sentences))()
    begins = np.asarray(drawn.tokens)[:, :, :2].tolist()
    assert all(begin == [9, 4] for row in begins[:2] for begin in row)
    assert any(begin != [9, 4] for row in begins[2:] for begin in row)


def test_the_nucleus_by_hand():
    probabilities = np.array([0.1, 0.5, 0.05, 0.25, 0.1])
    weights = jnp.log(jnp.asarray(probabilities))
    assert in_nucleus(weights, 0.5).tolist() == [False, True, False, False, False]
    assert in_nucleus(weights, 0.6).tolist() == [False, True, False, True, False]
    assert in_nucleus(weights, 0.8).tolist() == [True, True, False, True, True]  # of equals, all
    assert in_nucleus(weights, 1e-6).tolist() == [False, True, False, False, False]
