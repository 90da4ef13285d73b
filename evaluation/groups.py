"""Sentences of a held-out set that are easy or hard together, and so count as one where chance is estimated."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from data.corpus.splits import connect
from data.pairs import fold
from data.sources.phrasebook import combinations
from evaluation.sentences import Sentence

Groups = Int[np.ndarray, " sentences"]


def group_sentences(sentences: Sequence[Sentence], set_name: str = "") -> Groups:
    """The number of each sentence's group, from 0 on.

    Sentences that share a source or a reference are in one group, ignoring case and punctuation. In the embedded corpus
    so are those that share a construction and a word that training never has in it: ``set_name`` is that of a report.
    """
    held_out = combinations(set_name)
    rows = (
        [f"source {fold(each.source)}", *(f"target {fold(reference)}" for reference in each.references)]
        for each in sentences
    )
    return connect(row + held_out.get(each.source, []) for row, each in zip(rows, sentences, strict=True))
