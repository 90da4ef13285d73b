"""One system against others: scores, their differences and what chance could do, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison.differences import (
    Change,
    Group,
    Ngram,
    by_source_length,
    changed_ngrams,
    changed_sentences,
)
from evaluation.comparison.significance import (
    Interval,
    Pair,
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
    gained: list[Ngram]
    lost: list[Ngram]
    gains: list[Change]
    losses: list[Change]


@dataclass(frozen=True)
class Comparison:
    """Scores of all systems, the baseline's first, and each of the others against the baseline."""

    systems: list[str]
    bleu: list[Score]
    chrf: list[Score]
    against: list[Against]


def compare(systems: Sequence[System]) -> Comparison:
    """Compare every other system with the first, on one test set."""
    runs = [run for system in systems for run in system.runs]
    bleu, chrf = ({run.name: statistics_of(metric, run.sentences) for run in runs} for metric in (BLEU(), CHRF()))
    against = [set_against(systems[0], other, bleu, chrf) for other in systems[1:]]
    bleu_scores, chrf_scores = ([score_of(system, metric) for system in systems] for metric in (bleu, chrf))
    return Comparison([system.name for system in systems], bleu_scores, chrf_scores, adjust(against))


ByRun = dict[str, Statistics]


def score_of(system: System, metric: ByRun) -> Score:
    scores = [metric[run.name].score for run in system.runs]
    return Score(scores, fmean(scores), seed_interval(scores))


def set_against(base: System, other: System, bleu: ByRun, chrf: ByRun) -> Against:
    runs, others = zip(*pair_runs(base, other), strict=True)
    names = [(run.name, another.name) for run, another in zip(runs, others, strict=True)]
    bleu_pairs, chrf_pairs = ([Pair(metric[a], metric[b]) for a, b in names] for metric in (bleu, chrf))
    found, others_found = ([run.sentences for run in side] for side in (runs, others))
    return Against(
        other.name,
        other.config,
        names,
        difference_of(bleu_pairs),
        difference_of(chrf_pairs),
        by_source_length(found[0], bleu_pairs),
        *changed_ngrams(found, others_found),
        *changed_sentences(found, others_found, chrf_pairs),
    )


def pair_runs(base: System, other: System) -> list[tuple[EvaluatedRun, EvaluatedRun]]:
    """Runs of the same seed or, where the systems have none in common, in the order of their seeds."""
    by_seed = {run.seed: run for run in other.runs}
    same = [(run, by_seed[run.seed]) for run in base.runs if run.seed in by_seed]
    ordered = (sorted(system.runs, key=lambda run: run.seed) for system in (base, other))
    return same or list(zip(*ordered, strict=False))


def difference_of(pairs: list[Pair]) -> Difference:
    p = randomisation_p(pairs)
    of_seeds = seed_interval([pair.other.score - pair.base.score for pair in pairs])
    return Difference(difference(pairs), bootstrap_interval(pairs), of_seeds, p, p)


def adjust(against: list[Against]) -> list[Against]:
    """The same with p-values adjusted for the number of systems, those of each metric by themselves."""
    bleu, chrf = holm([each.bleu.p for each in against]), holm([each.chrf.p for each in against])
    return [
        replace(each, bleu=replace(each.bleu, p_adjusted=of_bleu), chrf=replace(each.chrf, p_adjusted=of_chrf))
        for each, of_bleu, of_chrf in zip(against, bleu, chrf, strict=True)
    ]
