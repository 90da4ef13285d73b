"""Group sentences of a held-out set that tend to be easy or hard together; significance tests sample whole groups."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from data.corpus.splits import connect
from data.pairs import fold
from data.sources.phrasebook import combinations
from evaluation.sentences import Sentence

Groups = Int[np.ndarray, " sentences"]


def group_sentences(sentences: Sequence[Sentence], set_name: str = "") -> Groups:
    """The number of each sentence's group, counted from 0.

    Sentences that share a source or a reference are in one group, ignoring case and punctuation. So are sentences of
    the embedded corpus, if the report's ``set_name`` names it, that share a construction and word never seen together.
    """
    held_out = combinations(set_name)
    rows = (
        [f"source {fold(each.source)}", *(f"target {fold(reference)}" for reference in each.references)]
        for each in sentences
    )
    return connect(row + held_out.get(each.source, []) for row, each in zip(rows, sentences, strict=True))
