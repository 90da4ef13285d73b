"""Compare one system with others: scores, their differences and significance, and where they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison import significance
from evaluation.comparison.differences import Change, LengthGroup, changed_sentences, source_lengths
from evaluation.comparison.significance import Effects, Estimate, Interval, SeedVariance, Statistics
from evaluation.groups import Groups
from evaluation.metrics import note_on_bleu
from evaluation.sentences import Sentence

FEWEST_SENTENCES = 100


@dataclass(frozen=True)
class EvaluatedRun:
    """A run with scores: its name, its seed, the model that was scored, and the scored sentences."""

    name: str
    seed: int
    model: str  # identifies the model: two searches with one model share it
    sentences: list[Sentence]
    bleu: Statistics
    chrf: Statistics


def metrics_of(sentences: Sequence[Sentence]) -> tuple[Statistics, Statistics]:
    """The statistics of BLEU and of chrF."""
    return significance.statistics_of(BLEU(), sentences), significance.statistics_of(CHRF(), sentences)


@dataclass(frozen=True)
class System:
    """Runs that differ only in their seed, ordered by it, and the differences from the baseline's config."""

    name: str
    runs: list[EvaluatedRun]
    config: list[str]


@dataclass(frozen=True)
class Score:
    """A metric's score in each run, and the mean with its interval for other sentences and, if known, other seeds."""

    runs: list[float]
    mean: float
    interval: Interval


@dataclass(frozen=True)
class Difference:
    """How much a metric differs from the baseline's, and whether that could be chance."""

    difference: float
    interval: Interval
    p: float
    p_adjusted: float  # by Holm's method, over all systems of the comparison
    seeds_are_known: bool  # from several runs of any system; if not, this compares two runs, not two systems
    verdict: str


@dataclass(frozen=True)
class Against:
    """A system compared with the baseline."""

    name: str
    config: list[str]
    bleu: Difference
    chrf: Difference
    lengths: list[LengthGroup]
    gains: list[Change]
    losses: list[Change]


@dataclass(frozen=True)
class Comparison:
    """Scores of all systems, the baseline first, and comparisons of the others with the baseline."""

    systems: list[str]
    bleu: list[Score]
    chrf: list[Score]
    against: list[Against]
    notes: list[str]  # what to know about the set when reading its scores


def compare_systems(systems: Sequence[System], groups: Groups) -> Comparison:
    """Compare every other system with the first, on one test set; ``groups`` are the groups of its sentences."""
    sentences = systems[0].runs[0].sentences
    by_bleu = [[run.bleu for run in system.runs] for system in systems]
    bleu = differences_of(systems, by_bleu, groups)
    chrf = differences_of(systems, [[run.chrf for run in system.runs] for system in systems], groups)
    found = zip(systems[1:], bleu[1], chrf[1], by_source_length(systems, by_bleu, groups), strict=True)
    against = [set_against(systems[0], *of_other) for of_other in found]
    notes = [*notes_on(sentences), f"{len(sentences)} sentences in {groups.max() + 1} groups."]
    return Comparison([system.name for system in systems], bleu[0], chrf[0], against, notes)


def notes_on(sentences: Sequence[Sentence]) -> list[str]:
    few = f"The set has only {len(sentences)} sentences: another set of this size may well reverse the order."
    bleu = note_on_bleu([sentence.references for sentence in sentences])
    return [few] * (len(sentences) < FEWEST_SENTENCES) + ([f"{bleu}."] if bleu else [])


def set_against(base: System, other: System, bleu: Difference, chrf: Difference, lengths: list[LengthGroup]) -> Against:
    sentences = base.runs[0].sentences, other.runs[0].sentences
    changes = changed_sentences(*sentences, *([run.chrf for run in each.runs] for each in (base, other)))
    return Against(other.name, other.config, bleu, chrf, lengths, *changes)


def differences_of(
    systems: Sequence[System], statistics: list[list[Statistics]], groups: Groups
) -> tuple[list[Score], list[Difference]]:
    """The scores of all systems by a metric's statistics, and the differences of the others from the first."""
    effects = [Effects.of(runs, groups) for runs in statistics]
    estimates = list(estimate_differences(systems, effects))
    p_values = [
        estimate.p if seeds.freedom else significance.randomisation_p(statistics[0][0], runs[0], groups)
        for runs, (estimate, seeds) in zip(statistics[1:], estimates, strict=True)
    ]
    found = []
    for (estimate, seeds), p, adjusted in zip(estimates, p_values, significance.holm(p_values), strict=True):
        verdict = significance.judge(estimate.value, adjusted, seeds.freedom > 0)
        found.append(Difference(estimate.value, estimate.interval, p, adjusted, seeds.freedom > 0, verdict))
    seeds = pool_models(systems, effects)
    scores = [(each, significance.of_system(each, seeds)) for each in effects]
    return [Score(each.scores.tolist(), score.value, score.interval) for each, score in scores], found


def estimate_differences(
    systems: Sequence[System], effects: Sequence[Effects]
) -> Iterator[tuple[Estimate, SeedVariance]]:
    """The difference of each other system from the first; systems with the same models are compared run by run."""
    seeds = pool_models(systems, effects)
    for system, each in zip(systems[1:], effects[1:], strict=True):
        if [run.model for run in system.runs] == [run.model for run in systems[0].runs]:
            own = significance.pool([each - effects[0]])
            yield significance.of_system(each - effects[0], own), own
        else:
            yield significance.difference(effects[0], each, seeds), seeds


def pool_models(systems: Sequence[System], effects: Sequence[Effects]) -> SeedVariance:
    """The variance over seeds. Of systems with the same models, such as two searches, only the first counts."""
    counted: set[str] = set()
    independent = []
    for system, each in zip(systems, effects, strict=True):
        models = {run.model for run in system.runs}
        if not models & counted:
            independent.append(each)
        counted |= models
    return significance.pool(independent)


def by_source_length(
    systems: Sequence[System], statistics: list[list[Statistics]], groups: Groups
) -> list[list[LengthGroup]]:
    """BLEU of every other system compared with the first, in each group of source lengths."""
    found: list[list[LengthGroup]] = [[] for _ in systems[1:]]
    for name, chosen in source_lengths(systems[0].runs[0].sentences).items():
        numbers = np.unique(groups[chosen], return_inverse=True)[1]
        effects = [Effects.of([run.only(chosen) for run in runs], numbers) for runs in statistics]
        means = [float(each.scores.mean()) for each in effects]
        for place, (estimate, _) in enumerate(estimate_differences(systems, effects)):
            part = LengthGroup(name, int(chosen.sum()), means[0], means[place + 1], estimate.interval)
            found[place].append(part)
    return found
