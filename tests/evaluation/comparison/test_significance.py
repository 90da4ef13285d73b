"""Intervals and p-values of differences: by enumeration, by hand, beside sacreBLEU, and where nothing differs."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from evaluation.comparison.significance import (
    Interval,
    RunPair,
    bootstrap_interval,
    difference,
    holm,
    judge,
    randomisation_p,
    seed_interval,
    seed_p,
    statistics_of,
)
from evaluation.metrics import score
from tests.evaluation.comparison.systems import drawn_set, noisy

SENTENCES = drawn_set(120)


def pair_of(base, other, metric=None):
    return RunPair(*(statistics_of(metric or BLEU(), sentences) for sentences in (base, other)))


def test_statistics_give_the_scores_of_the_one_evaluator():
    sentences = noisy(SENTENCES, 0.3, 1)
    found = score([each.translation for each in sentences], [each.references for each in sentences])
    assert statistics_of(BLEU(), sentences).score == pytest.approx(found.bleu, abs=1e-9)
    assert statistics_of(CHRF(), sentences).score == pytest.approx(found.chrf, abs=1e-9)
    chosen = np.arange(120) < 50
    part = score([each.translation for each in sentences[:50]], [each.references for each in sentences[:50]])
    assert statistics_of(BLEU(), sentences).only(chosen).score == pytest.approx(part.bleu, abs=1e-9)


def test_p_is_that_of_all_exchanges():
    """Eight sentences can be exchanged in 256 ways."""
    few = SENTENCES[:8]
    pair = pair_of(noisy(few, 0.3, 1), noisy(few, 0.05, 2))
    base, other = (side.counts for side in pair)
    ways = np.array(list(product([0, 1], repeat=8)))[:, :, None]
    differences = pair.other.scores(np.where(ways, base, other).sum(1)) - pair.base.scores(
        np.where(ways, other, base).sum(1)
    )
    exact = np.mean(np.abs(differences) >= abs(difference([pair])) - 1e-9)
    assert 0.01 < exact < 0.5
    assert randomisation_p([pair], trials=4000) == pytest.approx(exact, abs=4 * np.sqrt(exact / 4000))


@pytest.mark.parametrize(("metric", "rate"), [(BLEU, 0.27), (CHRF, 0.34)])
def test_p_is_about_that_of_sacrebleu(metric, rate, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    base, other = noisy(SENTENCES, 0.3, 1), noisy(SENTENCES, rate, 2)
    named: Any = [(name, [each.translation for each in side]) for name, side in (("base", base), ("other", other))]
    references = [[each.references[0] for each in SENTENCES]]
    _, found = PairedTest(named, {"metric": metric()}, references, test_type="ar", n_samples=2000)()
    theirs: Any = next(results[1] for name, results in found.items() if name != "System")
    pair = pair_of(base, other, metric())
    assert pair.other.score == pytest.approx(theirs.score, abs=1e-9)
    assert randomisation_p([pair], trials=2000) == pytest.approx(theirs.p_value, abs=0.05)


def test_equal_systems_do_not_differ_and_exchanged_ones_differ_by_the_sign():
    one, other = noisy(SENTENCES, 0.3, 1), noisy(SENTENCES, 0.25, 2)
    same, there, back = pair_of(one, one), pair_of(one, other), pair_of(other, one)
    assert difference([same]) == 0 and randomisation_p([same], trials=100) == 1
    assert bootstrap_interval([same], resamples=100) == Interval(0.0, 0.0)
    assert difference([back]) == -difference([there])
    interval, reverse = bootstrap_interval([there], 400), bootstrap_interval([back], 400)
    assert (reverse.low, reverse.high) == pytest.approx((-interval.high, -interval.low))
    assert randomisation_p([there], 500) == pytest.approx(randomisation_p([back], 500), abs=0.05)


def test_the_bootstrap_is_as_wide_as_the_jackknife_says():
    """The standard error of a difference by leaving out one sentence at a time (Efron 1982), without any draw."""
    sentences = drawn_set(400)
    pair = pair_of(noisy(sentences, 0.3, 1), noisy(sentences, 0.2, 2))
    left_out = [side.scores(side.counts.sum(0) - side.counts) for side in pair]
    changes = left_out[1] - left_out[0]
    error = np.sqrt((400 - 1) / 400 * np.sum((changes - changes.mean()) ** 2))
    interval = bootstrap_interval([pair])
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert (interval.high + interval.low) / 2 == pytest.approx(difference([pair]), abs=0.3 * error)


def test_a_run_given_twice_is_no_further_evidence():
    """What all seeds of a system share must not count once for each; and the same seed draws the same."""
    pair = pair_of(noisy(SENTENCES, 0.3, 1), noisy(SENTENCES, 0.25, 2))
    p, interval = randomisation_p([pair], 500), bootstrap_interval([pair], 500)
    assert 0.01 < p < 0.5
    assert randomisation_p([pair] * 5, 500) == p != randomisation_p([pair], 500, seed=1)
    assert bootstrap_interval([pair] * 5, 500) == interval != bootstrap_interval([pair], 500, 1)


@pytest.mark.nightly
def test_of_true_nulls_five_percent_are_rejected():
    """Systems of equal quality, 1,200 times: p below 0.05, and intervals without zero, in 3 to 7 percent."""
    rejected, outside, sentences = 0, 0, drawn_set(100)
    for trial in range(1200):
        pair = pair_of(noisy(sentences, 0.3, 2 * trial), noisy(sentences, 0.3, 2 * trial + 1))
        rejected += randomisation_p([pair], trials=199, seed=trial) <= 0.05
        interval = bootstrap_interval([pair], resamples=300, seed=trial)
        outside += interval.low > 0 or interval.high < 0
    assert 0.03 < rejected / 1200 < 0.07
    assert 0.03 < outside / 1200 < 0.08


def test_the_interval_over_seeds_by_hand():
    """Of 1, 2, 3: the mean 2, the standard deviation 1, and t = 4.3027 with two degrees of freedom."""
    interval = seed_interval([1.0, 2.0, 3.0])
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((2 - 4.30265 / 3**0.5, 2 + 4.30265 / 3**0.5), abs=1e-4)
    assert seed_interval([1.0]) is None


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([1.0, 2.0, 3.0], 1 - 12**0.5 / 14**0.5),  # t = 2 √3; with two degrees of freedom, p = 1 - t / √(t² + 2)
        ([2.0, 4.0], 1 - 2 / np.pi * np.arctan(3)),  # t = 3; with one, p = 1 - 2 / π · atan(t)
        ([-2.0, -4.0], 1 - 2 / np.pi * np.arctan(3)),
        ([-1.0, 1.0], 1.0),
        ([0.0, 0.0], 1.0),
        ([0.5, 0.5], 0.0),
    ],
)
def test_p_over_seeds_by_hand(values, p):
    assert seed_p(values) == pytest.approx(p, abs=1e-12)
    assert seed_p(values[:1]) is None


def test_p_over_seeds_is_five_percent_where_the_interval_ends_at_zero():
    values = np.random.default_rng(3).normal(size=5)
    interval = seed_interval(values.tolist())
    assert interval is not None
    assert seed_p((values - interval.low).tolist()) == pytest.approx(0.05)


def test_verdicts_claim_nothing_that_other_seeds_or_sentences_may_reverse():
    """However small the p over sentences: it says nothing about seeds."""
    assert judge(80.0, 0.0001, None) == judge(0.1, 0.9, None) == "one run each: other seeds may reverse this"
    assert judge(-0.7, 0.0003, 0.05) == "other seeds may reverse this"
    assert judge(-0.7, 0.05, 0.0003) == "other sentences may reverse this"
    assert judge(-0.7, 0.3, 0.3) == "no difference shown"
    assert (judge(0.7, 0.04, 0.04), judge(-0.7, 0.04, 0.04)) == ("better", "worse")


def test_holm_by_hand():
    """The smallest of three p-values counts three times, the next twice, and none less than one before it."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.2]) == [0.2] and holm([]) == []
