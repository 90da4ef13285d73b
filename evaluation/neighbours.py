"""How near a held-out set is to training: sentences one word apart, and what copying the most similar one scores.

A model that has seen "Tom is at home." needs little to translate "Tom was at home.", though no split shares a sentence.
Paraphrases with other words are not found.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import norm

from common.text_table import Table
from data.pairs import Pairs, fold
from evaluation.metrics import group_references, score

FEWEST_WORDS = 4  # in fewer, another word is another sentence
ROWS = 200  # of similarities at once
NOTE = (
    "Near: at most one word replaced, added or left out, case and punctuation ignored and contractions spelled out. "
    "Copying: each source gets the translation of the training source whose words are most similar."
)
Words = tuple[str, ...]

# English contractions: What's is What is. A name's genitive becomes the same.
CONTRACTIONS = [
    (re.compile(pattern), spelled)
    for pattern, spelled in {
        r"\bcan['’]t\b|\bcannot\b": "can not",
        r"\bwon['’]t\b": "will not",
        r"n['’]t\b": " not",
        r"['’]s\b": " is",
        r"['’]re\b": " are",
        r"['’]m\b": " am",
        r"['’]ll\b": " will",
        r"['’]ve\b": " have",
        r"['’]d\b": " would",
    }.items()
]


@dataclass(frozen=True)
class Neighbours:
    """Of the distinct sources of a held-out set: which are near training, and what copying scores.

    ``long`` are those of four words or more; ``near`` those of them that are at most one word from a source of training:
    a word replaced, added or left out. ``both`` are near a training pair on both sides, with one reference at least.
    ``copied`` is BLEU of each source's translation by that of the training source whose words are most similar.
    """

    long: Bool[np.ndarray, " sources"]
    near: Bool[np.ndarray, " sources"]
    both: Bool[np.ndarray, " sources"]
    copied: float


def words_of(sentence: str) -> Words:
    """The words without case and punctuation, contractions spelled out."""
    text = sentence.lower()
    if "'" in text or "’" in text or "cannot" in text:
        for pattern, spelled in CONTRACTIONS:
            text = pattern.sub(spelled, text)
    return tuple(fold(text).split())


def find_neighbours(held_out: Pairs, training: Pairs) -> Neighbours:
    """Compare a held-out set with the training pairs: some seconds for a hundred thousand of them."""
    sources, references = group_references(held_out.sources, held_out.targets)
    trained = [words_of(source) for source in training.sources]
    words = [words_of(source) for source in sources]
    long = np.array([len(each) >= FEWEST_WORDS for each in words])
    near = near_rows(words, trained)
    targets = [words_of(target) for target in training.targets]
    both = [
        any(is_near(words_of(each), targets[row]) for row in rows for each in group)
        for rows, group in zip(near, references, strict=True)
    ]
    copies = [training.targets[row] for row in most_similar(words, trained)]
    copied = score(copies, references).bleu
    return Neighbours(long, long & np.array([bool(rows) for rows in near]), long & np.array(both), copied)


def near_rows(sentences: Sequence[Words], others: Sequence[Words]) -> list[list[int]]:
    """For each sentence, the ``others`` at most one word apart, by an index of sentences with a word left out."""
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
    ends = one[same:], other[same:]
    return ends[0][1:] == ends[1][1:] or ends[0][1:] == ends[1] or ends[0] == ends[1][1:]


def most_similar(sentences: Sequence[Words], others: Sequence[Words]) -> list[int]:
    """For each sentence, the other with the largest cosine of TF-IDF vectors of words; the first of equals."""
    numbers: dict[str, int] = {}
    cells = [
        np.array([(row, numbers.setdefault(word, len(numbers))) for row, each in enumerate(side) for word in each])
        for side in (sentences, others)
    ]
    counts = [
        coo_array((np.ones(len(each)), each.reshape(-1, 2).T), shape=(len(side), len(numbers))).tocsr()
        for each, side in zip(cells, (sentences, others), strict=True)
    ]
    frequency = np.bincount(counts[1].indices, minlength=len(numbers))
    weighted = [each @ diags_array(np.log((1 + len(others)) / (1 + frequency))) for each in counts]
    mine, theirs = (diags_array(1 / np.maximum(norm(each, axis=1), 1e-9)) @ each for each in weighted)
    blocks = (mine[first : first + ROWS] @ theirs.T for first in range(0, len(sentences), ROWS))
    return [int(row) for block in blocks for row in block.argmax(axis=1)]


def neighbours_table(held_out: dict[str, Pairs], training: Pairs) -> Table:
    """A row for each held-out set."""
    rows = []
    for split, pairs in held_out.items():
        found = find_neighbours(pairs, training)
        long = max(1, int(found.long.sum()))
        shares = [f"{flags.sum():,} ({flags.sum() / long:.1%})" for flags in (found.near, found.both)]
        rows.append([split, f"{found.long.sum():,}", *shares, f"{found.copied:.1f}"])
    header = [
        "split",
        f"sources of {FEWEST_WORDS} words or more",
        "near training",
        "near on both sides",
        "BLEU of copying",
    ]
    return Table("Near neighbours", NOTE, header, rows)
