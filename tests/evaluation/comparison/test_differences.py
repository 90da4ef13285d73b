"""Where systems differ, on sentences whose counts can be made by hand."""

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from data.corpus.word_counts import summarise
from evaluation.comparison.differences import (
    Group,
    by_source_length,
    by_word_frequency,
    changed_sentences,
)
from evaluation.comparison.significance import RunPair, statistics_of
from evaluation.metrics import score
from tests.evaluation.comparison.systems import drawn_set, noisy, sentence


def test_groups_by_length_have_the_scores_of_their_sentences():
    sentences = drawn_set(80)
    base, other = noisy(sentences, 0.3, 1), noisy(sentences, 0.1, 2)
    pair = RunPair(statistics_of(BLEU(), base), statistics_of(BLEU(), other))
    groups = by_source_length(base, [pair])
    assert [group.name for group in groups] == ["1 to 5", "6 to 10", "11 to 15"]
    assert sum(group.size for group in groups) == 80
    short = [index for index, each in enumerate(base) if len(each.source.split()) < 6]
    expected = [
        score([side[index].translation for index in short], [side[index].references for index in short]).bleu
        for side in (base, other)
    ]
    assert (groups[0].size, groups[0].base, groups[0].other) == (len(short), *map(pytest.approx, expected))


def test_words_by_their_frequency_by_hand():
    """Of the rare words, gato and perro, the baseline has none right; of la, twice in training, both have all."""
    frequencies = summarise(["la"] * 12 + ["gato perro"])[1]
    references = ["La casa, el gato.", "la la perro"]
    base = [sentence("s", references, "la casa el perro")]  # nearest the first: three of four words
    other = [sentence("s", references, "La la gato")]  # nearest the second: two of three
    found = by_word_frequency([base], [other], frequencies)
    assert [(group.name, group.size) for group in found] == [("0", 2), ("1 to 9", 2), ("10 to 99", 3)]
    unseen, rare, frequent = found
    assert (unseen.base, unseen.other) == (100.0, 0.0)  # casa el in both; the second reference has neither
    assert (rare.base, rare.other) == (0.0, 0.0)  # perro against gato, and gato against perro
    assert (frequent.base, frequent.other) == (100.0, 100.0)
    one_right = by_word_frequency(
        [[sentence("s", ["a b c d"], "a b e")]], [[sentence("s", ["a b c d"], "")]], frequencies
    )
    assert one_right == [Group("0", 4, round(200 * 2 / (3 + 4), 9), 0.0)]  # two of three words are among the four
    both = by_word_frequency([base, base], [base, other], frequencies)
    assert both[0] == Group("0", 2, 100.0, 50.0)


def test_the_sentences_that_change_most():
    sentences = drawn_set(12)
    base, other = noisy(sentences, 0.3, 1), noisy(sentences, 0.3, 2)
    pair = RunPair(statistics_of(CHRF(), base), statistics_of(CHRF(), other))
    gains, losses = changed_sentences([base], [other], [pair])
    measure = CHRF().sentence_score
    scores = [[measure(each.translation, each.references).score for each in side] for side in (base, other)]
    changes = {each.source: after - before for each, before, after in zip(base, *scores, strict=True)}
    ranked = sorted(changes, key=lambda source: -changes[source])
    assert [each.source for each in gains] == [source for source in ranked[:5] if changes[source] > 0]
    assert [each.source for each in losses] == [source for source in ranked[:-6:-1] if changes[source] < 0]
    assert gains[0].chrf == pytest.approx(changes[ranked[0]], abs=1e-6)
    assert changed_sentences([base], [base], [RunPair(pair.base, pair.base)]) == ([], [])
