"""One system against others: scores, their differences and what chance could do, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison.differences import (
    Change,
    Group,
    by_source_length,
    changed_sentences,
)
from evaluation.comparison.significance import (
    Interval,
    RunPair,
    Statistics,
    bootstrap_interval,
    difference,
    holm,
    randomisation_p,
    seed_interval,
    statistics_of,
)
from evaluation.sentences import Sentence


@dataclass(frozen=True)
class EvaluatedRun:
    """A run with a score: its name, seed, and the sentences that the score is of."""

    name: str
    seed: int
    sentences: list[Sentence]

    @cached_property
    def bleu(self) -> Statistics:
        return statistics_of(BLEU(), self.sentences)

    @cached_property
    def chrf(self) -> Statistics:
        return statistics_of(CHRF(), self.sentences)


@dataclass(frozen=True)
class System:
    """Runs that differ by their seed alone, and how its config differs from the baseline's."""

    name: str
    runs: list[EvaluatedRun]
    config: list[str]


@dataclass(frozen=True)
class Score:
    """A metric's score in each run, and their mean with Student's interval over seeds."""

    runs: list[float]
    mean: float
    interval: Interval | None


@dataclass(frozen=True)
class Difference:
    """By how much a metric differs from the baseline's, in the mean over pairs of runs."""

    difference: float
    interval: Interval  # for other sentences: the bootstrap's
    seed_interval: Interval | None  # for other seeds: Student's
    p: float  # by randomisation
    p_adjusted: float  # by Holm's method, for all systems of the comparison


@dataclass(frozen=True)
class Against:
    """A system against the baseline."""

    name: str
    config: list[str]
    pairs: list[tuple[str, str]]  # names of the runs that are compared with each other
    bleu: Difference
    chrf: Difference
    lengths: list[Group]
    gains: list[Change]
    losses: list[Change]


@dataclass(frozen=True)
class Comparison:
    """Scores of all systems, the baseline's first, and each of the others against the baseline."""

    systems: list[str]
    bleu: list[Score]
    chrf: list[Score]
    against: list[Against]


def compare_systems(systems: Sequence[System]) -> Comparison:
    """Compare every other system with the first, on one test set."""
    against = [set_against(systems[0], other) for other in systems[1:]]
    bleu = [score_of([run.bleu for run in system.runs]) for system in systems]
    chrf = [score_of([run.chrf for run in system.runs]) for system in systems]
    return Comparison([system.name for system in systems], bleu, chrf, adjust(against))


def score_of(runs: Sequence[Statistics]) -> Score:
    scores = [run.score for run in runs]
    return Score(scores, fmean(scores), seed_interval(scores))


def set_against(base: System, other: System) -> Against:
    pairs = pair_runs(base, other)
    bleu = [RunPair(run.bleu, another.bleu) for run, another in pairs]
    chrf = [RunPair(run.chrf, another.chrf) for run, another in pairs]
    found, others_found = ([run.sentences for run in side] for side in zip(*pairs, strict=True))
    return Against(
        other.name,
        other.config,
        [(run.name, another.name) for run, another in pairs],
        difference_of(bleu),
        difference_of(chrf),
        by_source_length(found[0], bleu),
        *changed_sentences(found, others_found, chrf),
    )


def pair_runs(base: System, other: System) -> list[tuple[EvaluatedRun, EvaluatedRun]]:
    """Runs of the same seed or, where the systems have none in common, in the order of their seeds."""
    by_seed = {run.seed: run for run in other.runs}
    same = [(run, by_seed[run.seed]) for run in base.runs if run.seed in by_seed]
    ordered = (sorted(system.runs, key=lambda run: run.seed) for system in (base, other))
    return same or list(zip(*ordered, strict=False))


def difference_of(pairs: list[RunPair]) -> Difference:
    p = randomisation_p(pairs)
    of_seeds = seed_interval([pair.other.score - pair.base.score for pair in pairs])
    return Difference(difference(pairs), bootstrap_interval(pairs), of_seeds, p, p)


def adjust(against: list[Against]) -> list[Against]:
    """Adjust the p-values for the number of systems, each metric's separately."""
    bleu, chrf = holm([each.bleu.p for each in against]), holm([each.chrf.p for each in against])
    return [
        replace(each, bleu=replace(each.bleu, p_adjusted=of_bleu), chrf=replace(each.chrf, p_adjusted=of_chrf))
        for each, of_bleu, of_chrf in zip(against, bleu, chrf, strict=True)
    ]
