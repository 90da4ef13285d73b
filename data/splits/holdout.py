"""Held-out sets for a corpus that comes without them, and training pairs that a held-out set must not share.

Pairs that share a sentence, on either side and without regard to case and punctuation, form a group, and a group goes
to one set as a whole: otherwise a test sentence stands in training with another translation.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool

from data.pairs import Pairs, fold


def groups_of(pairs: Pairs) -> list[list[int]]:
    """The indices of the pairs, in groups that share sentences directly or through others."""
    parent = list(range(len(pairs)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]  # halve the way for the next who asks
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
    """Indices of disjoint held-out sets of about (never above) the given sizes, which share no sentence with the rest.

    Which groups are chosen depends on their sentences alone: not on their order, on a seed or on the direction. All
    pairs are compared with all others, which takes memory for every sentence, some hundred bytes for each: a corpus of
    many millions should come with sets of its own.
    """
    groups: dict[str, list[int]] = {}
    for group in groups_of(pairs):  # two groups have one key when a pair of one is a pair of the other turned round
        groups.setdefault(hash_of(min(text_of(pairs, index) for index in group)), []).extend(group)
    sets: list[list[int]] = [[] for _ in sizes]
    for _, group in sorted(groups.items()):
        for chosen, size in zip(sets, sizes, strict=True):
            if len(chosen) + len(group) <= size:
                chosen.extend(group)
                break
    return [sorted(chosen) for chosen in sets]


def text_of(pairs: Pairs, index: int) -> str:
    """A pair's folded sentences, the same in both directions."""
    return "\t".join(sorted([fold(pairs.sources[index]), fold(pairs.targets[index])]))


def hash_of(text: str) -> str:
    """A place in an order at random that never changes (BLAKE2b)."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def sharing(pairs: Pairs, others: Iterable[Pairs]) -> Bool[np.ndarray, " P"]:
    """For each pair, whether one of its sentences is also one of the others', on the same side."""
    others = list(others)
    sources = {fold(s) for part in others for s in part.sources}
    targets = {fold(t) for part in others for t in part.targets}
    shares = (fold(s) in sources or fold(t) in targets for s, t in zip(pairs.sources, pairs.targets, strict=True))
    return np.fromiter(shares, bool, len(pairs))


def without(pairs: Pairs, others: Iterable[Pairs]) -> Pairs:
    """The pairs that share no sentence with the others."""
    return pairs.keep(~sharing(pairs, others))
