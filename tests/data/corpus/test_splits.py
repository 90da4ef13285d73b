"""Held-out sets are whole groups of pairs that share sentences, chosen by their sentences alone."""

import collections
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.corpus.splits import find_overlap, group_pairs, has_shared, hold_out, without_shared
from data.pairs import Pairs, fold

# Few sentences, so that random pairs share many, also across the languages and by case and punctuation alone.
SENTENCES = ["a", "A!", "b", "¿b?", "c d", "C,  d.", "e", "é", "f", "g", "h", "i", "...", "!", "¡Straße", "strasse"]
NUMBERS = [f"number {i}" for i in range(60)]
DENSE = st.lists(st.tuples(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES)), max_size=30)
ROWS = st.one_of(DENSE, st.lists(st.tuples(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)), max_size=60))
SIZES = st.lists(st.integers(1, 12), min_size=1, max_size=2)


def as_pairs(rows: list[tuple[str, str]]) -> Pairs:
    return Pairs([first for first, _ in rows], [second for _, second in rows])


def by_search(pairs: Pairs) -> set[frozenset[int]]:
    """The groups, by asking of every two pairs whether they share a sentence and walking from one to the next."""
    rows = [(fold(s), fold(t)) for s, t in zip(pairs.sources, pairs.targets, strict=True)]
    unseen, groups = set(range(len(rows))), set()
    while unseen:
        group, queue = set(), collections.deque([unseen.pop()])
        while queue:
            index = queue.popleft()
            group.add(index)
            near = {other for other in unseen if rows[other][0] == rows[index][0] or rows[other][1] == rows[index][1]}
            unseen -= near
            queue.extend(near)
        groups.add(frozenset(group))
    return groups


def chosen_rows(pairs: Pairs, indices: list[int]) -> list[tuple[str, str]]:
    return sorted((pairs.sources[i], pairs.targets[i]) for i in indices)


@settings(max_examples=200)
@given(ROWS)
def test_groups_are_those_of_a_search(rows):
    pairs = as_pairs(rows)
    groups = group_pairs(pairs)
    assert {frozenset(group) for group in groups} == by_search(pairs)
    assert sorted(index for group in groups for index in group) == list(range(len(pairs)))


def test_a_long_chain_is_one_group():
    """Pairs 2i and 2i + 1 share a source, 2i + 1 and 2i + 2 a target."""
    order = list(range(20_000))
    random.Random(0).shuffle(order)
    pairs = Pairs([f"s {i // 2}" for i in order], [f"t {(i + 1) // 2}" for i in order])
    assert [len(group) for group in group_pairs(pairs)] == [20_000]


@settings(max_examples=200)
@given(ROWS, SIZES)
def test_sets_are_disjoint_small_enough_and_share_nothing_with_the_rest(rows, sizes):
    pairs = as_pairs(rows)
    sets = hold_out(pairs, sizes)
    assert all(len(chosen) <= size for chosen, size in zip(sets, sizes, strict=True))
    held = [index for chosen in sets for index in chosen]
    assert len(held) == len(set(held))
    rest = [index for index in range(len(pairs)) if index not in held]
    assert all(chosen == sorted(chosen) for chosen in sets)
    second = sets[1] if len(sets) == 2 else []
    overlap = find_overlap({"train": pairs.take(rest), "valid": pairs.take(sets[0]), "test": pairs.take(second)})
    assert not any(map(has_shared, overlap.values()))


@settings(max_examples=200)
@given(ROWS, SIZES, st.randoms())
def test_the_choice_depends_on_neither_order_nor_direction(rows, sizes, random):
    pairs, mixed = as_pairs(rows), as_pairs(random.sample(rows, len(rows)))
    turned = Pairs(mixed.targets, mixed.sources)
    expected = [chosen_rows(pairs, chosen) for chosen in hold_out(pairs, sizes)]
    assert [chosen_rows(mixed, chosen) for chosen in hold_out(mixed, sizes)] == expected
    back = [sorted((second, first) for first, second in chosen_rows(turned, c)) for c in hold_out(turned, sizes)]
    assert back == expected


def test_the_choice_looks_random_and_stays_when_the_corpus_grows():
    pairs = Pairs([f"sentence {i}" for i in range(2000)], [f"frase {i}" for i in range(2000)])
    (chosen,) = hold_out(pairs, [400])
    assert len(chosen) == 400
    quarters = collections.Counter(index * 4 // 2000 for index in chosen)
    assert all(60 < quarters[quarter] < 140 for quarter in range(4))  # 100 ± 4 × 8.7
    grown = Pairs([*pairs.sources, "new"], [*pairs.targets, "nuevo"])
    assert len(set(chosen) - set(hold_out(grown, [400])[0])) <= 1


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([40, 40], [25, 25]), ([28, 28], [28, 22]), ([30, 10], [30, 10]), ([60, 30], [33, 17]), ([7, 5], [7, 5])],
)
def test_sets_are_filled_in_turn_only_where_one_would_be_left_short(sizes, expected):
    """22 of 28 are enough, 10 of 40 are not. In turn, the 50 pairs are shared in proportion to the sizes."""
    pairs = Pairs([f"s {i}" for i in range(50)], [f"t {i}" for i in range(50)])
    assert [len(chosen) for chosen in hold_out(pairs, sizes)] == expected
    assert hold_out(Pairs([], []), sizes) == [[], []] and hold_out(pairs, []) == []


@settings(max_examples=100)
@given(DENSE, DENSE)
def test_sharing_is_what_the_audit_counts(rows, other_rows):
    pairs, others = as_pairs(rows), as_pairs(other_rows)
    left = without_shared(pairs, [others])
    assert not has_shared(find_overlap({"train": left, "valid": others, "test": Pairs([], [])})["train/valid"])
    for index in range(len(pairs)):
        one = pairs.take([index])
        alone = find_overlap({"train": one, "valid": others, "test": Pairs([], [])})["train/valid"]
        assert (len(without_shared(one, [others])) == 0) == has_shared(alone)
