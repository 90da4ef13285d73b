"""Where systems differ, on sentences whose counts can be made by hand."""

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison.differences import by_source_length, changed_sentences
from evaluation.comparison.significance import statistics_of
from evaluation.metrics import score
from tests.evaluation.comparison.systems import drawn_set, noisy


def test_groups_by_length_have_the_scores_of_their_sentences():
    sentences = drawn_set(80)
    base, other = noisy(sentences, 0.3, 1), noisy(sentences, 0.1, 2)
    groups = by_source_length(base, [statistics_of(BLEU(), base)], [statistics_of(BLEU(), other)])
    assert [group.name for group in groups] == ["1 to 5", "6 to 10", "11 to 15"]
    assert sum(group.size for group in groups) == 80
    short = [index for index, each in enumerate(base) if len(each.source.split()) < 6]
    expected = [
        score([side[index].translation for index in short], [side[index].references for index in short]).bleu
        for side in (base, other)
    ]
    assert (groups[0].size, groups[0].base, groups[0].other) == (len(short), *map(pytest.approx, expected))


def test_the_sentences_that_change_most():
    sentences = drawn_set(12)
    base, other = noisy(sentences, 0.3, 1), noisy(sentences, 0.3, 2)
    runs = [[statistics_of(CHRF(), side)] for side in (base, other)]
    gains, losses = changed_sentences(base, other, *runs)
    measure = CHRF().sentence_score
    scores = [[measure(each.translation, each.references).score for each in side] for side in (base, other)]
    changes = {each.source: after - before for each, before, after in zip(base, *scores, strict=True)}
    ranked = sorted(changes, key=lambda source: -changes[source])
    assert [each.source for each in gains] == [source for source in ranked[:5] if changes[source] > 0]
    assert [each.source for each in losses] == [source for source in ranked[:-6:-1] if changes[source] < 0]
    assert gains[0].chrf == pytest.approx(changes[ranked[0]], abs=1e-6)
    assert changed_sentences(base, base, runs[0], runs[0]) == ([], [])
