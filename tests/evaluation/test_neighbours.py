"""Near neighbours of training, beside every pair of sentences compared; groups of sentences by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.pairs import Pairs
from evaluation.groups import group_sentences
from evaluation.metrics import score
from evaluation.neighbours import find_neighbours, is_near, most_similar, near_rows, words_of
from tests.evaluation.comparison.systems import sentence

sentences = st.lists(st.lists(st.sampled_from("abc"), max_size=5).map(tuple), min_size=1, max_size=6)


def distance(one, other):
    """Levenshtein's, by its recursion."""
    if not one or not other:
        return len(one) + len(other)
    ways = distance(one[1:], other), distance(one, other[1:]), distance(one[1:], other[1:]) - (one[0] == other[0])
    return 1 + min(ways)


@given(held_out=sentences, training=sentences)
def test_near_is_a_word_replaced_added_or_left_out(held_out, training):
    near = [[row for row, other in enumerate(training) if distance(each, other) <= 1] for each in held_out]
    assert near_rows(held_out, training) == near
    assert [[row for row, other in enumerate(training) if is_near(each, other)] for each in held_out] == near


def test_contractions_are_spelled_out():
    spelled_out = words_of("what is tom is plan i cannot will not do not")
    assert words_of("What’s Tom's plan? I can't, won't, don't…") == spelled_out
    assert words_of("They're here; we'd, I'll.") == ("they", "are", "here", "we", "would", "i", "will")


def test_the_figures_by_hand():
    sources = ["Tom is at home now.", "We eat bread here.", "Yes."]
    training = Pairs(sources, ["Tom está en casa.", "Comemos pan.", "Sí."])
    sources = ["Tom was at home now.", "We eat bread there today.", "We never eat bread here.", "No."]
    held_out = Pairs(sources, ["Tom estuvo en casa.", "Hoy comemos pan allí.", "Nunca comemos arroz.", "No."])
    translations = ["Tom estuvo en casa.", "Comemos pan.", "Nunca pan.", "No."]
    found = find_neighbours(held_out, training, translations)
    assert (found.sources, found.near, found.near_on_both_sides) == (3, 2, 1)
    references = [[target] for target in held_out.targets]
    near, other = (score([translations[i] for i in rows], [references[i] for i in rows]).bleu for rows in ([0, 2], [1]))
    copied = score(["Tom está en casa.", "Comemos pan.", "Comemos pan.", "Tom está en casa."], references).bleu
    assert (found.bleu_near, found.bleu_others, found.bleu_copied) == pytest.approx((near, other, copied))
    assert find_neighbours(held_out, training).bleu_near is None
    assert most_similar([("eat", "here"), ("at", "now")], [words_of(each) for each in training.sources]) == [1, 0]


def test_sentences_that_share_a_side_or_a_held_out_word_are_one_group():
    sides = ("A b.", ["1"]), ("c", ["2", "3"]), ("a B!", ["4"]), ("d", ["3!"]), ("e", ["5"])
    found = [sentence(*each, "") for each in sides]
    assert group_sentences(found).tolist() == [0, 1, 0, 1, 2]
    assert group_sentences(found[:1], "phrasebook:grammar:test").tolist() == [0]
