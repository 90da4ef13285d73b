"""Held-out sets for a corpus without any, and removal of training pairs that share sentences with held-out pairs.

Pairs that share a sentence, on either side and ignoring case and punctuation, form a group, and a group goes to one
set as a whole: otherwise training would contain a test sentence with another translation.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool

from data.pairs import Pairs, fold


def group_pairs(pairs: Pairs) -> list[list[int]]:
    """Indices of the pairs in groups that share sentences, directly or through other pairs."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]  # halves the path for later calls
        return index

    for side in (pairs.sources, pairs.targets):
        first_with: dict[str, int] = {}
        for index, sentence in enumerate(side):
            parent[root(index)] = root(first_with.setdefault(fold(sentence), index))
    groups: dict[int, list[int]] = {}
    for index in range(len(pairs)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def hold_out(pairs: Pairs, sizes: Sequence[int]) -> list[list[int]]:
    """Indices of disjoint held-out sets of about, never above, ``sizes`` pairs that share no sentence with the rest.

    The choice depends on the sentences alone, not on their order, a seed or the direction. Every sentence takes some
    hundred bytes of memory: a corpus of many millions should come with held-out sets of its own.
    """
    groups: dict[str, list[int]] = {}
    for group in group_pairs(pairs):  # groups with a pair in common, even in the other direction, have the same key
        groups.setdefault(stable_hash(min(folded_pair(pairs, index) for index in group)), []).extend(group)
    sets: list[list[int]] = [[] for _ in sizes]
    for _, group in sorted(groups.items()):
        for chosen, size in zip(sets, sizes, strict=True):
            if len(chosen) + len(group) <= size:
                chosen.extend(group)
                break
    return [sorted(chosen) for chosen in sets]


def folded_pair(pairs: Pairs, index: int) -> str:
    """A pair's folded sentences, the same for both directions."""
    return "\t".join(sorted([fold(pairs.sources[index]), fold(pairs.targets[index])]))


def stable_hash(text: str) -> str:
    """A pseudo-random sort key that never changes (BLAKE2b)."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def shares_sentence(pairs: Pairs, others: Iterable[Pairs]) -> Bool[np.ndarray, " P"]:
    """For each pair, whether one of its folded sentences occurs in ``others`` on the same side."""
    others = list(others)
    sources = {fold(s) for part in others for s in part.sources}
    targets = {fold(t) for part in others for t in part.targets}
    shares = (fold(s) in sources or fold(t) in targets for s, t in zip(pairs.sources, pairs.targets, strict=True))
    return np.fromiter(shares, bool, len(pairs))


def without_shared(pairs: Pairs, others: Iterable[Pairs]) -> Pairs:
    """The pairs that share no sentence with ``others``."""
    return pairs.select(~shares_sentence(pairs, others))
