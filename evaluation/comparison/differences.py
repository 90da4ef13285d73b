"""Where two systems differ: by length of the source, by frequency of words, and in sentences.

A system may have several runs, and its figures are means over them. ``Runs`` has the sentences of each run, all of the
same test set.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

import numpy as np
from jaxtyping import Bool, Float

from data.corpus.word_counts import WordCounts, words_of
from evaluation.comparison.significance import RunPair, mean_of
from evaluation.sentences import Sentence

Runs = Sequence[Sequence[Sentence]]

LENGTHS = (1, 6, 11, 16, 21)  # the shortest source of each group, in words
FREQUENCIES = (0, 1, 10, 100, 1000)  # the lowest frequency in training of each group of words
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


def group_names(first: Sequence[int]) -> list[str]:
    """Names of groups of numbers that begin at these: 0, 1 to 4, …, 1000 or more."""
    lasts = [following - 1 for following in first[1:]]
    names = [str(low) if low == last else f"{low} to {last}" for low, last in zip(first, lasts, strict=False)]
    return [*names, f"{first[-1]} or more"]


def by_source_length(sentences: Sequence[Sentence], bleu: Sequence[RunPair]) -> list[Group]:
    """BLEU of the sentences of each group of source lengths, in words; groups without a sentence are left out."""
    lengths = np.array([len(sentence.source.split()) for sentence in sentences])
    groups = []
    for name, low, high in zip(group_names(LENGTHS), LENGTHS, [*LENGTHS[1:], inf], strict=True):
        chosen: Bool[np.ndarray, " sentences"] = (lengths >= low) & (lengths < high)
        if chosen.any():
            base, other = ([each.only(chosen).score for each in side] for side in zip(*bleu, strict=True))
            groups.append(Group(name, int(chosen.sum()), fmean(base), fmean(other)))
    return groups


def by_word_frequency(base: Runs, other: Runs, frequencies: WordCounts) -> list[Group]:
    """F1 of the words of each group of frequencies in training: how many are right, of those in the translations and in
    the references (Neubig et al. 2019, section 3.1). The size is the number of words in all references.

    Each translation is compared with the reference that shares most words with it.
    """
    words = sorted({word for run in (*base, *other) for each in run for word in all_words(each)})
    groups = np.searchsorted(FREQUENCIES, frequencies.of(words), side="right") - 1
    group_of = dict(zip(words, groups.tolist(), strict=True))
    sizes = Counter(group_of[word] for each in base[0] for text in each.references for word in words_of(text))
    scores = [mean_of([word_f1(run, group_of) for run in runs]).tolist() for runs in (base, other)]
    rows = zip(group_names(FREQUENCIES), *scores, strict=True)
    return [Group(name, sizes[index], *found) for index, (name, *found) in enumerate(rows) if sizes[index]]


def all_words(sentence: Sentence) -> list[str]:
    return [word for text in (sentence.translation, *sentence.references) for word in words_of(text)]


def word_f1(run: Sequence[Sentence], group_of: dict[str, int]) -> Float[np.ndarray, " groups"]:
    """F1 of each group's words in one run, from 0 to 100."""
    right, given = np.zeros(len(FREQUENCIES)), np.zeros(len(FREQUENCIES))
    for sentence in run:
        found = Counter(words_of(sentence.translation))
        references = [Counter(words_of(text)) for text in sentence.references]
        nearest = max(references, key=lambda words: (found & words).total() / max(1, found.total() + words.total()))
        for counts, into in ((found & nearest, right), (found, given), (nearest, given)):
            for word, count in counts.items():
                into[group_of[word]] += count
    return 200 * right / np.maximum(given, 1)


def changed_sentences(base: Runs, other: Runs, chrf: Sequence[RunPair]) -> tuple[list[Change], list[Change]]:
    """The sentences whose chrF rises most, and those whose falls most, with translations of the first runs."""
    changes = mean_of([pair.other.scores(pair.other.counts) - pair.base.scores(pair.base.counts) for pair in chrf])
    order = np.argsort(-changes, kind="stable").tolist()

    def describe(index: int) -> Change:
        first, second = base[0][index], other[0][index]
        return Change(float(changes[index]), first.source, first.references, first.translation, second.translation)

    gains = [describe(index) for index in order[:LISTED_SENTENCES] if changes[index] > 0]
    return gains, [describe(index) for index in order[: -LISTED_SENTENCES - 1 : -1] if changes[index] < 0]
