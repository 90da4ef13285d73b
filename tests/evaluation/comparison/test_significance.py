"""Intervals and p-values of differences: by enumeration, by hand, beside sacreBLEU, and where nothing differs."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest
from scipy import stats

from evaluation.comparison.significance import (
    Effects,
    bleu_interval,
    difference,
    estimate,
    holm,
    judge,
    of_system,
    pool,
    randomisation_p,
    statistics_of,
)
from evaluation.metrics import score
from tests.evaluation.comparison.simulation import World, by_sentences, crossed, share_found
from tests.evaluation.comparison.systems import drawn_set, noisy

SENTENCES = drawn_set(120)
APART = np.arange(120)  # every sentence a group of its own


def runs_of(*translated, metric=BLEU):
    return [statistics_of(metric(), sentences) for sentences in translated]


def test_statistics_give_the_scores_of_the_one_evaluator():
    sentences = noisy(SENTENCES, 0.3, 1)
    found = score([each.translation for each in sentences], [each.references for each in sentences])
    assert statistics_of(BLEU(), sentences).score == pytest.approx(found.bleu, abs=1e-9)
    assert statistics_of(CHRF(), sentences).score == pytest.approx(found.chrf, abs=1e-9)
    chosen = np.arange(120) < 50
    part = score([each.translation for each in sentences[:50]], [each.references for each in sentences[:50]])
    assert statistics_of(BLEU(), sentences).only(chosen).score == pytest.approx(part.bleu, abs=1e-9)


@pytest.mark.parametrize("groups", [np.arange(8), np.array([0, 0, 1, 2, 3, 4, 4, 4])])
def test_p_is_that_of_all_exchanges(groups):
    """Eight groups can be exchanged in 256 ways, and five in 32."""
    base, other = runs_of(noisy(SENTENCES[:8], 0.3, 1), noisy(SENTENCES[:8], 0.05, 2))
    ways = np.array(list(product([0, 1], repeat=groups[-1] + 1)))[:, groups, None]
    exchanged = np.where(ways, base.counts, other.counts), np.where(ways, other.counts, base.counts)
    differences = other.scores(exchanged[0].sum(1)) - base.scores(exchanged[1].sum(1))
    exact = np.mean(np.abs(differences) >= abs(other.score - base.score) - 1e-9)
    assert 0.01 < exact < 0.5
    assert randomisation_p(base, other, groups, trials=4000) == pytest.approx(exact, abs=4 * np.sqrt(exact / 4000))


@pytest.mark.parametrize(("metric", "rate"), [(BLEU, 0.27), (CHRF, 0.34)])
def test_p_is_about_that_of_sacrebleu(metric, rate, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    base, other = noisy(SENTENCES, 0.3, 1), noisy(SENTENCES, rate, 2)
    named: Any = [(name, [each.translation for each in side]) for name, side in (("base", base), ("other", other))]
    references = [[each.references[0] for each in SENTENCES]]
    _, found = PairedTest(named, {"metric": metric()}, references, test_type="ar", n_samples=2000)()
    theirs: Any = next(results[1] for name, results in found.items() if name != "System")
    runs = runs_of(base, other, metric=metric)
    assert runs[1].score == pytest.approx(theirs.score, abs=1e-9)
    assert randomisation_p(runs[0], runs[1], APART, trials=2000) == pytest.approx(theirs.p_value, abs=0.05)


def test_equal_systems_do_not_differ_and_exchanged_ones_differ_by_the_sign():
    one, other = runs_of(noisy(SENTENCES, 0.3, 1), noisy(SENTENCES, 0.25, 2))
    effects = [Effects.of([run], APART) for run in (one, other)]
    seeds = pool(effects)
    same = difference(effects[0], effects[0], seeds)
    there, back = difference(effects[0], effects[1], seeds), difference(effects[1], effects[0], seeds)
    assert (same.value, same.error, same.p) == (0, 0, 1) and randomisation_p(one, one, APART, trials=100) == 1
    assert (back.value, back.p) == (-there.value, there.p) and back.interval.low == -there.interval.high
    assert randomisation_p(one, other, APART, 500) == pytest.approx(randomisation_p(other, one, APART, 500), abs=0.05)


def test_without_seeds_the_interval_is_as_wide_as_the_bootstrap_of_groups_says():
    """scipy's percentile bootstrap, of three sentences at a time that are equally hard."""
    sentences, groups = drawn_set(600), np.repeat(np.arange(200), 3)
    rates = np.random.default_rng(5).choice([0.05, 0.5], 200)
    runs = []
    for gain, seed in ((1.0, 1), (0.8, 2)):
        parts = [
            noisy(sentences[3 * number : 3 * number + 3], rate * gain, [seed, number])
            for number, rate in enumerate(rates)
        ]
        runs += runs_of([each for part in parts for each in part])
    sums = [run.of_groups(groups) for run in runs]

    def drawn(rows):
        totals = [each[rows].sum(0, keepdims=True) for each in sums]
        return float(runs[1].scores(totals[1])[0] - runs[0].scores(totals[0])[0])

    found = stats.bootstrap((np.arange(200),), drawn, n_resamples=2000, vectorized=False, method="percentile", rng=0)
    effects = [Effects.of([run], groups) for run in runs]
    mine = difference(effects[0], effects[1], pool(effects))
    assert mine.error == pytest.approx(found.standard_error, rel=0.06)
    assert (mine.interval.low, mine.interval.high) == pytest.approx(found.confidence_interval, abs=0.3 * mine.error)
    apart = [Effects.of([run], np.arange(600)) for run in runs]
    assert of_system(effects[0], pool([])).error > 1.2 * of_system(apart[0], pool([])).error


def test_the_interval_of_one_score_is_that_of_its_groups():
    """Of a set in two halves that share their sentences: half as many groups, each as one sentence twice."""
    sentences = noisy(SENTENCES[:60], 0.3, 1)
    once, twice = bleu_interval(sentences, "test.tsv"), bleu_interval(sentences * 2, "test.tsv")
    assert once.groups == twice.groups == 60
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))
    assert bleu_interval(sentences[:1], "test.tsv").low == 0


def test_the_variances_of_a_crossed_design_by_hand():
    """Two systems of two runs on three groups; the sums are worked out in the comments."""
    base = Effects(np.array([10.0, 12.0]), np.array([[1.0, 0.0, -1.0], [3.0, 0.0, -3.0]]))
    other = Effects(np.array([15.0, 15.0]), np.array([[0.0, 6.0, -6.0], [0.0, 6.0, -6.0]]))
    seeds = pool([base, other])
    assert seeds == pytest.approx((1.0, 4 / 12, 2))  # 2 / 2; four deviations of 1, by 2 degrees of freedom and 3 · 2
    found = difference(base, other, seeds)
    # Seeds: 1 · (1/2 + 1/2). Groups: influences of -2, 6 and -4, so 56 / (3 · 2), less the noise of 1/3.
    by_groups = 56 / 6 - 1 / 3
    assert (found.value, found.error**2) == pytest.approx((4, 1 + by_groups))
    assert found.freedom == pytest.approx((1 + by_groups) ** 2 / (1 / 2 + by_groups**2 / 2))
    assert found.p == pytest.approx(2 * stats.t.sf(4 / found.error, found.freedom))
    half = stats.t.ppf(0.975, found.freedom) * found.error
    assert (found.interval.low, found.interval.high) == pytest.approx((4 - half, 4 + half))


def test_with_seeds_alone_it_is_students_test():
    """Where groups have no influence of their own; scipy's test of two samples with equal variances."""
    scores = np.random.default_rng(2).normal(50, 1, (2, 5))
    base, other = (Effects(each, np.zeros((5, 9))) for each in scores)
    found, theirs = difference(base, other, pool([base, other])), stats.ttest_ind(scores[1], scores[0])
    assert (found.p, found.freedom) == pytest.approx((theirs.pvalue, 8))
    paired, theirs = of_system(other - base, pool([other - base])), stats.ttest_rel(scores[1], scores[0])
    assert (paired.p, paired.freedom) == pytest.approx((theirs.pvalue, 4))


def test_noise_of_single_groups_is_not_counted_twice():
    """Where there is nothing else, the scores of the seeds show all of it: counted twice, the ratio would be 2."""
    ratios = []
    for draw in range(20):
        noise = np.random.default_rng(draw).normal(size=(2, 40, 300))
        base, other = (Effects(each.mean(1), each - each.mean(1, keepdims=True)) for each in noise)
        seeds = pool([base, other])
        ratios.append(difference(base, other, seeds).error ** 2 / (seeds.score / 20))
    assert 1 <= np.mean(ratios) < 1.15


def test_one_group_tells_nothing():
    found = estimate(5.0, np.zeros(1), 1.0, pool([]))
    assert (found.interval.low, found.interval.high, found.p) == (-95, 105, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(("runs", "seed"), [(1, 0.0), (2, 0.025), (5, 0.025)])
def test_of_true_nulls_five_percent_are_found(runs, seed):
    """With one run, the null is that the two models are equally good; with more, that the two systems are."""
    assert 0.035 < share_found(crossed, World(seed=seed), runs, 0.0, 1500) < 0.065


@pytest.mark.slow
def test_a_test_that_knows_no_seeds_finds_too_much():
    world = World(groups=100)
    assert share_found(by_sentences, world, 5, 0.0, 200) > 0.09 > share_found(crossed, world, 5, 0.0, 200)


def test_verdicts():
    assert judge(80.0, 0.0001, seeds_are_known=False) == "of these two runs: better"
    assert judge(-0.7, 0.0003, seeds_are_known=True) == "worse"
    assert judge(-0.7, 0.05, seeds_are_known=True) == "no difference found"


def test_holm_by_hand():
    """The smallest of three p-values counts three times, the next twice, and none less than one before it."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.2]) == [0.2] and holm([]) == []
