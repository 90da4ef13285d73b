"""Where two systems differ: by length of the source, and in sentences.

A system may have several runs, and its figures are means over them. ``Runs`` has the sentences of each run, all of the
same test set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

import numpy as np
from jaxtyping import Bool

from evaluation.comparison.significance import RunPair, mean_of
from evaluation.sentences import Sentence

Runs = Sequence[Sequence[Sentence]]

# Lengths of sources in words, the first and the last of each group.
GROUPS = {"1 to 5": (1, 5), "6 to 10": (6, 10), "11 to 15": (11, 15), "16 to 20": (16, 20), "21 or more": (21, inf)}
LISTED_SENTENCES = 5


@dataclass(frozen=True)
class Group:
    """A part of the test set, its size, and what each system reaches there, from 0 to 100."""

    name: str
    size: int
    base: float
    other: float


@dataclass(frozen=True)
class Change:
    """A sentence, by how much its chrF changes, and a translation of each system."""

    chrf: float
    source: str
    references: list[str]
    base: str
    other: str


def by_source_length(sentences: Sequence[Sentence], bleu: Sequence[RunPair]) -> list[Group]:
    """BLEU of the sentences of each group of source lengths, in words; groups without a sentence are left out."""
    lengths = np.array([len(sentence.source.split()) for sentence in sentences])
    groups = []
    for name, (first, last) in GROUPS.items():
        chosen: Bool[np.ndarray, " sentences"] = (lengths >= first) & (lengths <= last)
        if chosen.any():
            base, other = ([each.only(chosen).score for each in side] for side in zip(*bleu, strict=True))
            groups.append(Group(name, int(chosen.sum()), fmean(base), fmean(other)))
    return groups


def changed_sentences(base: Runs, other: Runs, chrf: Sequence[RunPair]) -> tuple[list[Change], list[Change]]:
    """The sentences whose chrF rises most, and those whose falls most, with translations of the first runs."""
    changes = mean_of([pair.other.scores(pair.other.counts) - pair.base.scores(pair.base.counts) for pair in chrf])
    order = np.argsort(-changes, kind="stable").tolist()

    def describe(index: int) -> Change:
        first, second = base[0][index], other[0][index]
        return Change(float(changes[index]), first.source, first.references, first.translation, second.translation)

    gains = [describe(index) for index in order[:LISTED_SENTENCES] if changes[index] > 0]
    return gains, [describe(index) for index in order[: -LISTED_SENTENCES - 1 : -1] if changes[index] < 0]
