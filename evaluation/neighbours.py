"""How close a held-out set is to training: sentences one word apart, and the score of copying the most similar one.

A model that has seen "Tom is at home." can easily translate "Tom was at home.", although the splits share no sentence.
Paraphrases in other words are not found.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import norm

from common.text_table import Table
from data.pairs import Pairs, fold
from evaluation.metrics import group_references, score

FEWEST_WORDS = 4  # in a shorter sentence, one other word makes it a different sentence
ROWS = 200  # of similarities to compute at once
NOTE = (
    "Near: at most one word replaced, added or left out, case and punctuation ignored and contractions spelled out. "
    "Copying: each source gets the translation of the most similar training source, by its words and pairs of words."
)
Words = tuple[str, ...]

# In English, What's is What is. A genitive becomes the same.
SPELLED = {"n't": " not", "'s": " is", "'re": " are", "'m": " am", "'ll": " will", "'ve": " have", "'d": " would"}
CONTRACTION = re.compile(r"(n't|'(?:s|re|m|ll|ve|d))\b")


@dataclass(frozen=True)
class Neighbours:
    """A held-out set compared with training; it counts distinct sources of four words or more.

    ``near`` sources are at most one word from a training source; ``near_on_both_sides`` also have a reference at most
    one word from that source's translation. ``bleu_near`` and ``bleu_others`` are for a model's translations of the
    near sources and of the others, or None if there are none; ``bleu_copied`` is for copying.
    """

    sources: int
    near: int
    near_on_both_sides: int
    bleu_near: float | None
    bleu_others: float | None
    bleu_copied: float


def words_of(sentence: str) -> Words:
    """The words without case and punctuation, and with contractions spelled out."""
    text = sentence.lower().replace("’", "'").replace("cannot", "can not")
    text = text.replace("can't", "can not").replace("won't", "will not")
    return tuple(fold(CONTRACTION.sub(lambda found: SPELLED[found[1]], text)).split())


def find_neighbours(held_out: Pairs, training: Pairs, translations: Sequence[str] = ()) -> Neighbours:
    """Compare a held-out set, and ``translations`` of its distinct sources, with training: seconds for 100,000."""
    sources, references = group_references(held_out.sources, held_out.targets)
    sides = sources, training.sources, training.targets
    words, trained, targets = ([words_of(each) for each in side] for side in sides)
    long = [len(each) >= FEWEST_WORDS for each in words]
    rows = near_rows(words, trained)
    near = [is_long and bool(found) for is_long, found in zip(long, rows, strict=True)]
    chosen = compress(zip(rows, references, strict=True), near)
    both = sum(any(is_near(words_of(each), targets[row]) for row in found for each in group) for found, group in chosen)

    def bleu(found: Sequence[str], chosen: Sequence[bool]) -> float | None:
        return score(list(compress(found, chosen)), list(compress(references, chosen))).bleu if any(chosen) else None

    others = [is_long and not is_near for is_long, is_near in zip(long, near, strict=True)]
    of_model = (bleu(translations, near), bleu(translations, others)) if translations else (None, None)
    copies = [training.targets[row] for row in most_similar(words, trained)]
    return Neighbours(sum(long), sum(near), both, *of_model, score(copies, references).bleu)


def near_rows(sentences: Sequence[Words], others: Sequence[Words]) -> list[list[int]]:
    """For each sentence, the ``others`` at most one word apart, found by an index of sentences with a word left out."""
    index: dict[Words, list[int]] = {}
    for row, sentence in enumerate(sentences):
        for key in {sentence, *without_a_word(sentence)}:
            index.setdefault(key, []).append(row)
    found: list[list[int]] = [[] for _ in sentences]
    for row, other in enumerate(others):
        candidates = {each for key in (other, *without_a_word(other)) for each in index.get(key, ())}
        for each in candidates:
            if is_near(sentences[each], other):
                found[each].append(row)
    return found


def without_a_word(sentence: Words) -> Iterator[Words]:
    return (sentence[:place] + sentence[place + 1 :] for place in range(len(sentence)))


def is_near(one: Words, other: Words) -> bool:
    """Whether they are equal or one word apart."""
    same = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    same = min(len(one), len(other)) if same is None else same
    one, other = one[same:], other[same:]
    return one[1:] == other[1:] or one[1:] == other or one == other[1:]


def most_similar(sentences: Sequence[Words], others: Sequence[Words]) -> list[int]:
    """For each sentence, the other with the largest cosine of TF-IDF vectors; ties go to the first.

    The features are words and bigrams, including the ends of the sentence.
    """
    numbers: dict[Hashable, int] = {}
    counts = []
    for side in (sentences, others):
        features = ([*each, *zip(("", *each), (*each, ""), strict=True)] for each in side)
        cells = [(row, numbers.setdefault(one, len(numbers))) for row, each in enumerate(features) for one in each]
        counts.append((np.array(cells).T, len(side)))
    mine, theirs = (
        coo_array((np.ones(len(cells[0])), tuple(cells)), shape=(size, len(numbers))).tocsr() for cells, size in counts
    )
    weights = diags_array(np.log((1 + len(others)) / (1 + np.bincount(theirs.indices, minlength=len(numbers)))))
    mine, theirs = (each @ weights for each in (mine, theirs))
    mine, theirs = (diags_array(1 / np.maximum(norm(each, axis=1), 1e-9)) @ each for each in (mine, theirs))
    blocks = (mine[first : first + ROWS] @ theirs.T for first in range(0, len(sentences), ROWS))
    return [int(row) for block in blocks for row in block.argmax(axis=1)]


def neighbours_table(held_out: dict[str, Pairs], training: Pairs) -> Table:
    """A row for each held-out set."""
    rows = []
    for split, pairs in held_out.items():
        found = find_neighbours(pairs, training)
        counts = found.near, found.near_on_both_sides
        shares = [f"{count:,} ({count / max(1, found.sources):.1%})" for count in counts]
        rows.append([split, f"{found.sources:,}", *shares, f"{found.bleu_copied:.1f}"])
    header = ["split", f"sources of {FEWEST_WORDS} words or more", "near training", "on both sides", "BLEU of copying"]
    return Table("Near neighbours", NOTE, header, rows)
