"""Take held-out sets out of a corpus, and check that splits share no sentences.

Sentences are compared on each side, ignoring case, punctuation and repeated white space. Pairs that share a sentence
form a group, and a whole group goes into one set: otherwise training would contain a test sentence with another
translation.
"""

import hashlib
from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import chain, combinations

import numpy as np
from jaxtyping import Int, UInt64
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from common.errors import UserError
from common.text import in_brief
from data.corpus.report import SPLITS, Overlap, SharedSentences, Sides
from data.pairs import Pairs, fold
from data.sentences import in_blocks

FAR_BELOW = 0.75  # of the requested pairs

Hashes = UInt64[np.ndarray, " distinct"]


def group_pairs(pairs: Pairs) -> list[list[int]]:
    """Group the indices of pairs that share sentences, directly or through other pairs."""
    keys = ([("source", fold(s)), ("target", fold(t))] for s, t in zip(pairs.sources, pairs.targets, strict=True))
    groups: dict[int, list[int]] = {}
    for index, number in enumerate(connect(keys).tolist()):
        groups.setdefault(number, []).append(index)
    return list(groups.values())


def connect(rows: Iterable[Iterable[Hashable]]) -> Int[np.ndarray, " rows"]:
    """The number of each row's group; rows with a key in common are in the same group."""
    numbers: dict[Hashable, int] = {}
    keys = [[numbers.setdefault(key, len(numbers)) for key in row] for row in rows]
    columns = np.fromiter(chain.from_iterable(keys), np.int64) + len(keys)
    places = np.repeat(np.arange(len(keys)), [len(row) for row in keys]), columns
    links = coo_array((np.ones(len(columns)), places), shape=(len(keys) + len(numbers),) * 2)
    found: Int[np.ndarray, " rows"] = np.unique(connected_components(links)[1][: len(keys)], return_inverse=True)[1]
    return found


def hold_out(pairs: Pairs, sizes: Sequence[int]) -> list[list[int]]:
    """Indices of disjoint held-out sets of about, never above, ``sizes`` pairs that share no sentence with the rest.

    The sets are filled one after the other or, if that leaves one short, in turn. The choice depends only on the
    sentences, not on their order, a seed or the direction. Every sentence takes about a hundred bytes of memory: a
    corpus of many millions should come with its own held-out sets.
    """
    groups: dict[str, list[int]] = {}
    for group in group_pairs(pairs):  # groups with a pair in common, even in the other direction, have the same key
        folded = (sorted([fold(pairs.sources[index]), fold(pairs.targets[index])]) for index in group)
        groups.setdefault(stable_hash(min(map("\t".join, folded))), []).extend(group)
    ordered = [group for _, group in sorted(groups.items())]
    sets = fill(ordered, sizes)
    if any(is_short(len(chosen), size) for chosen, size in zip(sets, sizes, strict=True)):
        sets = fill(ordered, sizes, in_turn=True)
    return [sorted(chosen) for chosen in sets]


def fill(groups: Iterable[list[int]], sizes: Sequence[int], in_turn: bool = False) -> list[list[int]]:
    """Put each group into the first set with room for it or, if ``in_turn``, into the emptiest set."""
    sets: list[list[int]] = [[] for _ in sizes]
    for group in groups:
        with_room = [number for number, size in enumerate(sizes) if len(sets[number]) + len(group) <= size]
        if with_room:
            emptiest = min(with_room, key=lambda number: len(sets[number]) / sizes[number])
            sets[emptiest if in_turn else with_room[0]].extend(group)
    return sets


def is_short(pairs: int, asked: int) -> bool:
    """Whether a held-out set has far fewer pairs than requested."""
    return pairs < FAR_BELOW * asked


def stable_hash(text: str) -> str:
    """A pseudo-random sort key that never changes (BLAKE2b)."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def without_shared(pairs: Pairs, others: Collection[Pairs]) -> Pairs:
    """The pairs that share no sentence with ``others`` on the same side."""
    sources = {fold(s) for part in others for s in part.sources}
    targets = {fold(t) for part in others for t in part.targets}
    shares = (fold(s) in sources or fold(t) in targets for s, t in zip(pairs.sources, pairs.targets, strict=True))
    return pairs.select(~np.fromiter(shares, bool, len(pairs)))


def hash_sentences(sentences: Iterable[str]) -> Hashes:
    """Sorted distinct 8-byte BLAKE2b hashes of the folded sentences."""
    digests = bytearray()  # the sentences themselves would take too much memory
    for block in in_blocks(sentences):
        digests += b"".join([hashlib.blake2b(one.encode(), digest_size=8).digest() for one in set(map(fold, block))])
    hashes = np.frombuffer(digests, dtype="<u8")
    hashes.sort()  # in place: np.unique would put the integers into a table six times their size
    is_new = np.ones(len(hashes), dtype=bool)
    is_new[1:] = hashes[1:] != hashes[:-1]
    return hashes[is_new]


def find_overlap(splits: dict[str, Pairs]) -> Overlap:
    """For every pair of splits and each side, the distinct folded sentences in both."""
    sources = folded_splits({name: pairs.sources for name, pairs in splits.items()})
    targets = folded_splits({name: pairs.targets for name, pairs in splits.items()})
    sides = sources, targets
    return {f"{a}/{b}": Sides(*(intersect(side[a], side[b]) for side in sides)) for a, b in combinations(SPLITS, 2)}


def folded_splits(splits: dict[str, Sequence[str]]) -> dict[str, set[str]]:
    """The folded sentences of each split; for ``train``, which may be large, only those also in another split."""
    others = {name: set(map(fold, sentences)) for name, sentences in splits.items() if name != "train"}
    held_out = set().union(*others.values())
    return others | {"train": {folded for folded in map(fold, splits["train"]) if folded in held_out}}


def intersect(some: set[str], others: set[str]) -> SharedSentences:
    common = sorted(some & others)
    return SharedSentences(len(common), common[:3])


def refuse_overlap(overlap: Overlap, allowed: list[str]) -> None:
    """UserError if two splits share sentences and ``data.allow_overlap`` does not name them."""
    leaks = {splits: sides for splits, sides in overlap.items() if splits not in allowed and has_shared(sides)}
    if not leaks:
        return
    described = []
    for splits, sides in leaks.items():
        counts = f"{sides.source.shared} source and {sides.target.shared} target sentences"
        example = (sides.source.examples + sides.target.examples)[0]
        described.append(f'{splits} {counts}, such as "{in_brief(example)}"')
    names = ",".join([*allowed, *leaks])
    drop = "drop those training pairs with data.drop_overlap=true, " * any("train" in splits for splits in leaks)
    advice = f"Remove them from one of the files, {drop}or accept them with data.allow_overlap=[{names}]"
    raise UserError(f"splits share sentences (case and punctuation ignored): {'; '.join(described)}. {advice}")


def has_shared(sides: Sides[SharedSentences]) -> bool:
    return sides.source.shared + sides.target.shared > 0
