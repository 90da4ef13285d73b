"""Whether the difference between two systems' scores could be chance.

A system may be several runs that differ only in their seed; its score is the mean over its runs. Chance has two parts:
the seed's effect on a run, and which sentences the set happens to have, in groups that are easy or hard together. Seeds
and groups are crossed, because every run translates every sentence. The variance of a mean is therefore that over
seeds, plus that over groups, minus what both contain: the noise of single sentences in single runs (Searle, Casella and
McCulloch 1992, for two-way random models). The variance over seeds is pooled over all systems of a comparison.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from sacrebleu.metrics.bleu import BLEU
from scipy.special import stdtr, stdtrit

from evaluation.groups import Groups, group_sentences
from evaluation.metrics import BleuInterval, reference_streams
from evaluation.sentences import Sentence

SEED, TRIALS = 12345, 10_000
LEVEL = 0.05
BLOCK = 500  # trials at once, so that memory use does not grow with their number


@dataclass(frozen=True)
class Statistics:
    """Counts of each sentence, such as n-gram matches; sacreBLEU computes a metric from their sums."""

    metric: Any
    counts: Float[np.ndarray, "sentences counts"]

    @property
    def score(self) -> float:
        return float(self.scores(self.counts.sum(0, keepdims=True))[0])

    def only(self, chosen: Bool[np.ndarray, " sentences"]) -> "Statistics":
        """The statistics of some of the sentences."""
        return Statistics(self.metric, self.counts[chosen])

    def of_groups(self, groups: Groups) -> Float[np.ndarray, "groups counts"]:
        """The sums of the counts of each group."""
        sums = np.zeros((int(groups.max()) + 1, self.counts.shape[1]))
        np.add.at(sums, groups, self.counts)
        return sums

    def scores(self, sums: Float[np.ndarray, "draws counts"]) -> Float[np.ndarray, " draws"]:
        """The score of each row of summed counts."""
        return np.array([self.metric._compute_score_from_stats(row).score for row in sums.tolist()])


def statistics_of(metric: Any, sentences: Sequence[Sentence]) -> Statistics:
    """The statistics of a sacreBLEU metric; each translation is compared with all its references."""
    streams = reference_streams([sentence.references for sentence in sentences])
    counts = metric._extract_corpus_statistics([sentence.translation for sentence in sentences], streams)
    return Statistics(metric, np.array(counts, np.float64))


@dataclass(frozen=True)
class Effects:
    """Scores of the runs of a system, and the influence of each group of sentences on each score.

    A group's influence is how much the score falls without it, times the number of groups minus one: the jackknife
    (Tukey 1958). Influences are centred. The variance of their mean estimates the variance of the score over other
    groups.
    """

    scores: Float[np.ndarray, " runs"]
    influences: Float[np.ndarray, "runs groups"]

    @classmethod
    def of(cls, runs: Sequence[Statistics], groups: Groups) -> "Effects":
        return cls(np.array([run.score for run in runs]), np.array([_influences(run, groups) for run in runs]))

    def __sub__(self, other: "Effects") -> "Effects":
        """The differences between runs with the same seeds, in the same order."""
        return Effects(self.scores - other.scores, self.influences - other.influences)


def _influences(run: Statistics, groups: Groups) -> Float[np.ndarray, " groups"]:
    sums = run.of_groups(groups)
    without = run.scores(sums.sum(0) - sums)
    centred: np.ndarray = (len(sums) - 1) * (without.mean() - without)
    return centred.round(9)


class SeedVariance(NamedTuple):
    """The variance of one run's score over seeds, and the part of it that is noise in single groups.

    ``freedom`` is its degrees of freedom: 0 if no system has two runs.
    """

    score: float
    noise: float
    freedom: int


def pool(systems: Sequence[Effects]) -> SeedVariance:
    """The variance over seeds, pooled over all systems with several runs."""
    freedom = sum(len(each.scores) - 1 for each in systems)
    if not freedom:
        return SeedVariance(0.0, 0.0, 0)
    groups = systems[0].influences.shape[1]
    scores, noise = (
        sum(float(np.square(values - values.mean(0)).sum()) for values in all_values) / freedom
        for all_values in ([each.scores for each in systems], [each.influences for each in systems])
    )
    return SeedVariance(scores, noise / max(1, groups * (groups - 1)), freedom)


def p_above(scores: Sequence[float], target: float) -> float:
    """How likely a mean this high is if the mean over all seeds is ``target``: the one-sided one-sample t test."""
    mean, error = float(np.mean(scores)), float(np.std(scores, ddof=1)) / len(scores) ** 0.5
    if error == 0:
        return float(mean <= target)
    return float(stdtr(len(scores) - 1, (target - mean) / error))


@dataclass(frozen=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A score or a difference of scores, its standard error, and the degrees of freedom of the error."""

    value: float
    error: float
    freedom: float

    @property
    def interval(self) -> Interval:
        """Student's t interval, at most as wide as the range of scores."""
        half = min(100.0, float(stdtrit(self.freedom, 0.975)) * self.error) if self.freedom else 100.0
        return Interval(self.value - half, self.value + half)

    @property
    def p(self) -> float:
        """The p-value of the two-sided t-test that the value is zero."""
        if not self.freedom or not self.error:  # one group, or no variation, as between equal translations
            return float(not self.freedom or self.value == 0)
        return 2 * float(stdtr(self.freedom, -abs(self.value) / self.error))


def estimate(value: float, influences: Float[np.ndarray, " groups"], share: float, seeds: SeedVariance) -> Estimate:
    """The estimate of a value that has ``share`` of one run's variance over seeds, with its error.

    ``influences`` are the influences of the groups on the value. If no system has several runs, the estimate holds only
    for the models that were scored. Degrees of freedom follow Satterthwaite (1946).
    """
    groups = len(influences)
    by_groups = float(np.square(influences).sum()) / max(1, groups * (groups - 1))
    parts = [(share * seeds.score, seeds.freedom), (max(0.0, by_groups - share * seeds.noise), groups - 1)]
    variance = sum(part for part, _ in parts)
    squares = sum(part**2 / freedom for part, freedom in parts if freedom)
    return Estimate(round(value, 9), variance**0.5, variance**2 / squares if squares else float(groups - 1))


def of_system(system: Effects, seeds: SeedVariance) -> Estimate:
    """The score of a system, the mean over its runs."""
    return estimate(float(system.scores.mean()), system.influences.mean(0), 1 / len(system.scores), seeds)


def bleu_interval(sentences: Sequence[Sentence], set_name: str) -> BleuInterval:
    """The interval of one run's BLEU on the set with this name, between 0 and 100."""
    groups = group_sentences(sentences, set_name)
    found = of_system(Effects.of([statistics_of(BLEU(), sentences)], groups), pool([])).interval
    return BleuInterval(max(0.0, found.low), min(100.0, found.high), int(groups.max()) + 1)


def difference(base: Effects, other: Effects, seeds: SeedVariance) -> Estimate:
    """The score of another system minus the baseline's; runs with the same seed are treated as independent."""
    value = float(other.scores.mean() - base.scores.mean())
    influences = other.influences.mean(0) - base.influences.mean(0)
    return estimate(value, influences, 1 / len(base.scores) + 1 / len(other.scores), seeds)


def randomisation_p(base: Statistics, other: Statistics, groups: Groups, trials: int = TRIALS) -> float:
    """The two-sided p-value of the difference of two runs by approximate randomisation (Riezler and Maxwell 2005).

    Each trial swaps the translations of each group of sentences with probability ½, as if it were chance which run
    they come from. p is the share of trials, including the observed one, with a difference at least as large.
    """
    rng, observed, as_large = np.random.default_rng(SEED), abs(round(other.score - base.score, 9)), 0
    one, another = base.of_groups(groups), other.of_groups(groups)
    for first in range(0, trials, BLOCK):
        chosen = rng.integers(2, size=(min(BLOCK, trials - first), len(one))).astype(np.float64)
        moved = chosen @ (another - one)
        found = other.scores(another.sum(0) - moved) - base.scores(one.sum(0) + moved)
        as_large += int((abs(found.round(9)) >= observed).sum())
    return (as_large + 1) / (trials + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, which keep the probability of any false positive below the level."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def judge(difference: float, p: float, seeds_are_known: bool) -> str:
    """The verdict on a difference; if no system has several runs, it is limited to these two runs."""
    found = "no difference found" if p >= LEVEL else "better" if difference > 0 else "worse"
    return found if seeds_are_known else f"of these two runs: {found}"
