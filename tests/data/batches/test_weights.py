"""A pair comes as often as its weight says, evenly over the epochs, and the batches stay a function of the step."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import UserError
from common.special_tokens import EOS
from data.batches.windows import visits_in
from tests.data.batches.test_epochs import sentences
from tests.data.batches.test_stream import CONFIG, WEIGHTS, equal
from tests.prepared import stream_of


def visits(epochs: int, weights, seed: int) -> np.ndarray:
    """[epochs, pairs]"""
    return np.stack([visits_in(epoch, np.asarray(weights, dtype=np.float64), seed) for epoch in range(epochs)])


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.floats(1e-3, 20), st.integers(1, 400).map(lambda n: n / 40)), min_size=1, max_size=20),
    st.integers(0, 2**63),
    st.integers(1, 150),
)
def test_totals_are_never_a_visit_off(weights, seed, epochs):
    totals = visits(epochs, weights, seed).cumsum(axis=0)
    for pair, weight in enumerate(weights):
        for epoch in (1, 2, 3, epochs // 2, epochs):
            exact = Fraction(weight) * epoch
            if 0 < epoch <= epochs:
                assert totals[epoch - 1, pair] in (math.floor(exact), math.ceil(exact))


def test_epochs_have_as_many_visits_as_the_weights_say():
    """The number of 4000 pairs of weight w in one epoch is binomial: 4000 w ± 4 √(4000 w (1 − w))."""
    for weight in (0.1, 0.5, 0.9):
        spread = 4 * math.sqrt(4000 * weight * (1 - weight))
        for seed in range(3):
            sizes = visits(10, [weight] * 4000, seed).sum(axis=1)
            assert (abs(sizes - 4000 * weight) < spread).all()


def test_without_weights_nothing_is_changed(phrases, phrase_tokenizer):
    plain = stream_of(phrases, phrase_tokenizer, CONFIG, 3)
    ones = stream_of(phrases, phrase_tokenizer, CONFIG, 3, weights=np.ones(240))
    assert all(equal(plain.batch(step), ones.batch(step)) for step in range(plain.steps_in(0) + 5))
    # The first window is the first 50 of the pairs in the order of Philox's raw bits, as before there were weights.
    bits = np.random.Philox(key=np.array([3, 0], dtype=np.uint64), counter=0).random_raw(240)
    first = {phrases.sources[i] for i in np.argsort(bits, kind="stable")[:50]}
    steps = range(plain.windows.rows(0, 0) // CONFIG.batch_rows)  # whole batches of the first window
    sources = [source for step in steps for source, _ in sentences(plain.batch(step), phrase_tokenizer)]
    assert len(sources) > 25 and set(sources) <= first


def test_fingerprints_tell_weights_apart(phrases, phrase_tokenizer):
    some = [None, WEIGHTS, WEIGHTS[::-1].copy(), np.ones(240), np.full(240, 0.5)]
    prints = [stream_of(phrases, phrase_tokenizer, CONFIG, 3, weights=weights).fingerprint for weights in some]
    assert len(set(prints)) == 5
    assert stream_of(phrases, phrase_tokenizer, CONFIG, 3, weights=WEIGHTS.copy()).fingerprint == prints[1]


def test_the_fingerprint_without_weights_is_the_one_of_earlier_runs(phrases, phrase_tokenizer):
    """Else a run that was begun before there were weights could not go on."""
    settings = b"[1, 3, 48, 4, 50, 0.0]"
    rows = "".join(f"\n{s}\t{t}" for s, t in zip(phrases.sources, phrases.targets, strict=True))
    expected = hashlib.sha256(settings + phrase_tokenizer.model + rows.encode()).hexdigest()
    assert stream_of(phrases, phrase_tokenizer, CONFIG, 3).fingerprint == expected


def test_epochs_without_a_pair_are_passed_over(phrases, phrase_tokenizer):
    few, weights, refused = phrases.take(range(4)), np.full(4, 0.125), 0
    for seed in range(20):
        with_pairs = [epoch for epoch in range(16) if visits_in(epoch, weights, seed).sum() > 0]
        if with_pairs[0] > 0:
            with pytest.raises(UserError, match="leave no pair for the first epoch; raise them"):
                stream_of(few, phrase_tokenizer, CONFIG, seed, weights=weights)
            refused += 1
        else:
            stream = stream_of(few, phrase_tokenizer, CONFIG, seed, weights=weights)
            assert [stream.epoch_of(step) for step in range(len(with_pairs))] == [(epoch, 0) for epoch in with_pairs]
            pieces = [int((stream.batch(step).source_tokens == EOS).sum()) for step in range(len(with_pairs))]
            assert sum(pieces) == 8  # each of the four pairs twice in sixteen epochs
    assert 5 < refused < 18  # (7/8)⁴ = 0.59 of the seeds


@pytest.mark.parametrize("weight", [1e9, 1e300])
def test_an_epoch_of_too_many_visits_is_refused_before_it_takes_any_memory(phrases, phrase_tokenizer, weight):
    with pytest.raises(UserError, match=r"data\.weights ask for .* visits to pairs in an epoch; at most 5e\+08"):
        stream_of(phrases, phrase_tokenizer, CONFIG, 1, np.full(240, weight))
