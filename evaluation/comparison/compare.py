"""One system against others: scores, their differences and what chance could do, and where they differ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison import significance
from evaluation.comparison.differences import Change, Group, by_source_length, changed_sentences
from evaluation.comparison.significance import Interval, RunPair, Statistics
from evaluation.metrics import note_on_bleu
from evaluation.sentences import Sentence

FEWEST_SENTENCES = 100


@dataclass(frozen=True)
class EvaluatedRun:
    """A run with a score: its name, seed, and the sentences that the score is of."""

    name: str
    seed: int
    sentences: list[Sentence]

    @cached_property
    def bleu(self) -> Statistics:
        return significance.statistics_of(BLEU(), self.sentences)

    @cached_property
    def chrf(self) -> Statistics:
        return significance.statistics_of(CHRF(), self.sentences)


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
    p: float  # by randomisation of sentences
    p_adjusted: float  # by Holm's method, for all systems of the comparison
    seed_p: float | None  # Student's, over pairs of runs
    seed_p_adjusted: float | None
    verdict: str = ""


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
    notes: list[str]  # what to know of the set before its scores are read


def compare_systems(systems: Sequence[System]) -> Comparison:
    """Compare every other system with the first, on one test set."""
    against = [set_against(systems[0], other) for other in systems[1:]]
    bleu = [score_of([run.bleu for run in system.runs]) for system in systems]
    chrf = [score_of([run.chrf for run in system.runs]) for system in systems]
    notes = notes_on(systems[0].runs[0].sentences)
    return Comparison([system.name for system in systems], bleu, chrf, adjust(against), notes)


def notes_on(sentences: Sequence[Sentence]) -> list[str]:
    few = f"The set has only {len(sentences)} sentences: another one of so few may well reverse the order."
    bleu = note_on_bleu([sentence.references for sentence in sentences])
    return [few] * (len(sentences) < FEWEST_SENTENCES) + ([f"{bleu}."] if bleu else [])


def score_of(runs: Sequence[Statistics]) -> Score:
    scores = [run.score for run in runs]
    return Score(scores, fmean(scores), significance.seed_interval(scores))


def set_against(base: System, other: System) -> Against:
    pairs = pair_runs(base, other)
    bleu = [RunPair(run.bleu, another.bleu) for run, another in pairs]
    chrf = [RunPair(run.chrf, another.chrf) for run, another in pairs]
    found, others_found = ([run.sentences for run in side] for side in zip(*pairs, strict=True))
    names, changes = [(run.name, another.name) for run, another in pairs], changed_sentences(found, others_found, chrf)
    differences = difference_of(bleu), difference_of(chrf)
    return Against(other.name, other.config, names, *differences, by_source_length(found[0], bleu), *changes)


def pair_runs(base: System, other: System) -> list[tuple[EvaluatedRun, EvaluatedRun]]:
    """Runs of the same seed or, where the systems have none in common, in the order of their seeds."""
    by_seed = {run.seed: run for run in other.runs}
    same = [(run, by_seed[run.seed]) for run in base.runs if run.seed in by_seed]
    ordered = (sorted(system.runs, key=lambda run: run.seed) for system in (base, other))
    return same or list(zip(*ordered, strict=False))


def difference_of(pairs: list[RunPair]) -> Difference:
    """Without a verdict, and its p-values as if there were no other systems."""
    by_pairs = [pair.other.score - pair.base.score for pair in pairs]
    by_sentences, by_seeds = significance.randomisation_p(pairs), significance.seed_p(by_pairs)
    intervals = significance.bootstrap_interval(pairs), significance.seed_interval(by_pairs)
    return Difference(significance.difference(pairs), *intervals, by_sentences, by_sentences, by_seeds, by_seeds)


def adjust(against: list[Against]) -> list[Against]:
    """Judge all systems, each metric separately."""
    judged = judge_all([each.bleu for each in against]), judge_all([each.chrf for each in against])
    return [replace(each, bleu=bleu, chrf=chrf) for each, bleu, chrf in zip(against, *judged, strict=True)]


def judge_all(found: list[Difference]) -> list[Difference]:
    """Adjust the p-values for the number of systems, and judge by them."""
    by_seeds = iter(significance.holm([each.seed_p for each in found if each.seed_p is not None]))
    judged = []
    for each, p in zip(found, significance.holm([each.p for each in found]), strict=True):
        p_of_seeds = None if each.seed_p is None else next(by_seeds)
        verdict = significance.judge(each.difference, p, p_of_seeds)
        judged.append(replace(each, p_adjusted=p, seed_p_adjusted=p_of_seeds, verdict=verdict))
    return judged
