"""Sentences of a held-out set that are easy or hard together, and so count as one where chance is estimated."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from data.corpus.splits import connect
from data.pairs import fold
from data.sources.phrasebook import combinations

Groups = Int[np.ndarray, " sentences"]


def group_sentences(sources: Sequence[str], references: Sequence[list[str]], set_name: str = "") -> Groups:
    """The number of each source's group, from 0 on.

    Sentences that share a source or a reference are in one group, ignoring case and punctuation. In the embedded corpus
    so are those that share a construction and a word that training never has in it: ``set_name`` is that of a report.
    """
    held_out = combinations(set_name)
    return connect(
        [f"source {fold(source)}", *(f"target {fold(each)}" for each in targets), *held_out.get(source, [])]
        for source, targets in zip(sources, references, strict=True)
    )
