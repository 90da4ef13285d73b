"""Training and held-out sets of the phrasebook.

The grammar's held-out sentences test more than memory: each has a word in a construction in which training never has
it, though training has the word in other constructions and the construction with other words. Hand-written phrases are
held out at random, as a set of their own.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from data.corpus.splits import folded_pair, hold_out, stable_hash, without_shared
from data.pairs import Pairs
from data.phrasebook.grammar import Sentence, generate

PHRASES = Path(__file__).with_name("phrases.tsv")
HELD_OUT_PHRASES = 150
SIZES = {"test": 1000, "valid": 500}  # of the grammar's held-out sets
RESERVED = {"test": (0.0, 0.015), "valid": (0.015, 0.03)}  # the share of the combinations that each reserves
COMMON = 0.05  # a lemma in a larger share of a construction's sentences is part of it, as gustar of "gustar"
FAMILIAR = 4  # constructions that a lemma needs before one of them may be reserved

Combination = tuple[str, str]  # a construction and a lemma


@functools.cache
def phrasebook() -> dict[tuple[str, str], Pairs]:
    """English–Spanish pairs by part and split. No sentence of a held-out set is in any other set, on either side."""
    written, sentences = hand_written(), generated()
    [chosen] = hold_out(written, [HELD_OUT_PHRASES])
    held_out = {("phrases", "test"): written.take(chosen)}
    reserved = {split: reserve(sentences, *RESERVED[split]) for split in SIZES}
    for split, size in SIZES.items():
        candidates = as_pairs(s for s in sentences if not reserved[split].isdisjoint(combinations(s)))
        candidates = without_shared(candidates, held_out.values())
        order = sorted(range(len(candidates)), key=lambda index: stable_hash(folded_pair(candidates, index)))
        held_out["grammar", split] = candidates.take(order[:size])
    untrained = frozenset().union(*reserved.values())
    training = {
        ("grammar", "train"): as_pairs(s for s in sentences if untrained.isdisjoint(combinations(s))),
        ("phrases", "train"): written.take(sorted(set(range(len(written))) - set(chosen))),
    }
    return {key: without_shared(pairs, held_out.values()) for key, pairs in training.items()} | held_out


@functools.cache
def generated() -> tuple[Sentence, ...]:
    """All sentences of the grammar, generated once."""
    return tuple(generate())


def hand_written() -> Pairs:
    """The phrases of the file."""
    rows = [line.split("\t") for line in PHRASES.read_text(encoding="utf-8").splitlines()]
    return Pairs([english for english, _ in rows], [spanish for _, spanish in rows])


def as_pairs(sentences: Iterable[Sentence]) -> Pairs:
    chosen = list(sentences)
    return Pairs([s.english for s in chosen], [s.spanish for s in chosen])


def combinations(sentence: Sentence) -> set[Combination]:
    """The construction with each of the sentence's lemmas."""
    return {(sentence.construction, lemma) for lemma in sentence.lemmas}


def reserve(sentences: Sequence[Sentence], low: float, high: float) -> set[Combination]:
    """Combinations to keep out of training: those with a hash in [low, high) whose lemma is not part of the
    construction and occurs in others."""
    uses = Counter(combination for s in sentences for combination in combinations(s))
    sizes = Counter(s.construction for s in sentences)
    constructions = Counter(lemma for _, lemma in uses)
    return {
        (construction, lemma)
        for (construction, lemma), count in uses.items()
        if count <= COMMON * sizes[construction] and constructions[lemma] >= FAMILIAR
        if low <= fraction_of(construction, lemma) < high
    }


def fraction_of(construction: str, lemma: str) -> float:
    """A pseudo-random number in [0, 1) that never changes."""
    return int(stable_hash(f"{construction}\t{lemma}"), 16) / 2**64
