"""Where two systems differ: by length of the source, and in sentences. Figures of several runs are their means."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from jaxtyping import Bool

from evaluation.comparison.significance import Interval, Statistics
from evaluation.sentences import Sentence

# Lengths of sources in words, the first and the last of each group.
GROUPS = {"1 to 5": (1, 5), "6 to 10": (6, 10), "11 to 15": (11, 15), "16 to 20": (16, 20), "21 or more": (21, inf)}
LISTED_SENTENCES = 5


@dataclass(frozen=True)
class LengthGroup:
    """A part of the test set, its size, each system's score on it, and the interval of the difference."""

    name: str
    size: int
    base: float
    other: float
    interval: Interval


@dataclass(frozen=True)
class Change:
    """A sentence, the change in its chrF, and a translation by each system."""

    chrf: float
    source: str
    references: list[str]
    base: str
    other: str


def source_lengths(sentences: Sequence[Sentence]) -> dict[str, Bool[np.ndarray, " sentences"]]:
    """The sentences in each group of source lengths, in words; empty groups are left out."""
    lengths = np.array([len(sentence.source.split()) for sentence in sentences])
    groups = {name: (lengths >= first) & (lengths <= last) for name, (first, last) in GROUPS.items()}
    return {name: chosen for name, chosen in groups.items() if chosen.any()}


def changed_sentences(
    base: Sequence[Sentence], other: Sequence[Sentence], base_chrf: Sequence[Statistics], chrf: Sequence[Statistics]
) -> tuple[list[Change], list[Change]]:
    """The sentences with the largest gains and losses in mean chrF, with translations by the first runs."""
    means = [np.mean([run.scores(run.counts) for run in runs], axis=0) for runs in (base_chrf, chrf)]
    changes = (means[1] - means[0]).round(9)
    order = np.argsort(-changes, kind="stable").tolist()

    def describe(index: int) -> Change:
        first, second = base[index], other[index]
        return Change(float(changes[index]), first.source, first.references, first.translation, second.translation)

    gains = [describe(index) for index in order[:LISTED_SENTENCES] if changes[index] > 0]
    return gains, [describe(index) for index in order[: -LISTED_SENTENCES - 1 : -1] if changes[index] < 0]
