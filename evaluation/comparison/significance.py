"""Whether the difference of two systems' scores could be chance.

A system may be several runs that differ by their seed alone. It is compared with another pair by pair: run by run of
the same seed, and its score is the mean over its runs. Tests draw over the sentences of the test set, and are seeded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import stdtr, stdtrit

from evaluation.metrics import reference_streams
from evaluation.sentences import Sentence

SEED, TRIALS, RESAMPLES = 12345, 10_000, 2_000
LEVEL = 0.05
BLOCK = 500  # trials at once, so that memory does not grow with their number


@dataclass(frozen=True)
class Statistics:
    """The counts of each sentence from whose sums sacreBLEU computes a metric, such as matches of n-grams."""

    metric: Any
    counts: Float[np.ndarray, "sentences counts"]

    @property
    def score(self) -> float:
        return float(self.scores(self.counts.sum(0, keepdims=True))[0])

    def only(self, chosen: Bool[np.ndarray, " sentences"]) -> "Statistics":
        """Those of some of the sentences."""
        return Statistics(self.metric, self.counts[chosen])

    def scores(self, sums: Float[np.ndarray, "draws counts"]) -> Float[np.ndarray, " draws"]:
        """The score of each row of summed counts."""
        return np.array([self.metric._compute_score_from_stats(row).score for row in sums.tolist()])


class RunPair(NamedTuple):
    """A run of the baseline and one of the other system, on the same sentences."""

    base: Statistics
    other: Statistics


@dataclass(frozen=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def statistics_of(metric: Any, sentences: Sequence[Sentence]) -> Statistics:
    """The statistics of a sacreBLEU metric; each translation is compared with all its references."""
    streams = reference_streams([sentence.references for sentence in sentences])
    counts = metric._extract_corpus_statistics([sentence.translation for sentence in sentences], streams)
    return Statistics(metric, np.array(counts, np.float64))


def difference(pairs: Sequence[RunPair]) -> float:
    """The other system's score minus the baseline's, in the mean over pairs."""
    return fmean(pair.other.score - pair.base.score for pair in pairs)


def randomisation_p(pairs: Sequence[RunPair], trials: int = TRIALS, seed: int = SEED) -> float:
    """The p-value of the difference by approximate randomisation (Riezler and Maxwell 2005), two-sided.

    A trial exchanges the translations of each sentence between the runs of a pair with probability ½, as if it were
    chance which system they are from. All pairs exchange the same sentences, because a sentence that is easier for one
    system is so with every seed: drawn apart, such effects would cancel, and p be too small. p is the share of trials,
    the observed one included, whose difference is at least as large.
    """
    rng, observed, as_large = np.random.default_rng(seed), abs(round(difference(pairs), 9)), 0
    for count in blocks_of(trials):
        chosen = rng.integers(2, size=(count, len(pairs[0].base.counts))).astype(np.float64)
        found = mean_of([_exchange(pair, chosen) for pair in pairs])
        as_large += int((abs(found) >= observed).sum())
    return (as_large + 1) / (trials + 1)


def _exchange(pair: RunPair, chosen: Float[np.ndarray, "draws sentences"]) -> Float[np.ndarray, " draws"]:
    """Differences of scores after the chosen sentences of each draw are exchanged."""
    base, other = pair.base.counts, pair.other.counts
    moved = chosen @ (other - base)
    return pair.other.scores(other.sum(0) - moved) - pair.base.scores(base.sum(0) + moved)


def bootstrap_interval(pairs: Sequence[RunPair], resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The 95 % percentile interval of the difference when the test set's sentences are drawn again, with replacement.

    All runs are scored on the same draw (the paired bootstrap of Koehn 2004, as an interval of the difference).
    """
    rng, found, size = np.random.default_rng(seed), [], len(pairs[0].base.counts)
    for count in blocks_of(resamples):
        drawn = rng.multinomial(size, np.full(size, 1 / size), size=count).astype(np.float64)
        scores = ([side.scores(drawn @ side.counts) for side in pair] for pair in pairs)
        found.append(mean_of([other - base for base, other in scores]))
    return Interval(*map(float, np.percentile(np.concatenate(found), [2.5, 97.5])))


def mean_of(arrays: list[np.ndarray]) -> Float[np.ndarray, " draws"]:
    """The mean over pairs, rounded so that sums in another order make no difference."""
    means: np.ndarray = np.mean(arrays, axis=0)
    return means.round(9)


def blocks_of(number: int) -> list[int]:
    return [min(BLOCK, number - first) for first in range(0, number, BLOCK)]


def seed_interval(values: Sequence[float]) -> Interval | None:
    """Student's 95 % interval of the mean over seeds; None for a single one."""
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.975)) * stdev(values) / len(values) ** 0.5
    return Interval(fmean(values) - half, fmean(values) + half)


def seed_p(values: Sequence[float]) -> float | None:
    """The p-value of Student's t-test that the mean over seeds is zero, two-sided; None for a single one."""
    if len(values) < 2:
        return None
    mean, error = fmean(values), stdev(values) / len(values) ** 0.5
    if error == 0:  # as where nothing is drawn at random
        return float(mean == 0)
    return 2 * float(stdtr(len(values) - 1, -abs(mean) / error))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, which keep the chance of any false finding among them below the level."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def judge(difference: float, p: float, seed_p: float | None) -> str:
    """What may be concluded of a difference, by its p-values over sentences and over seeds (None: one run each)."""
    if seed_p is None:
        return "one run each: other seeds may reverse this"
    if p < LEVEL and seed_p < LEVEL:
        return "better" if difference > 0 else "worse"
    if p < LEVEL:
        return "other seeds may reverse this"
    return "other sentences may reverse this" if seed_p < LEVEL else "no difference shown"
