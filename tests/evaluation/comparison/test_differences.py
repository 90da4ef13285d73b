"""Where systems differ, on sentences whose counts can be made by hand."""

import pytest
from sacrebleu.metrics.chrf import CHRF

from evaluation.comparison.compare import EvaluatedRun, System, compare_systems, metrics_of
from evaluation.comparison.differences import changed_sentences
from evaluation.comparison.significance import statistics_of
from evaluation.groups import group_sentences
from tests.evaluation.comparison.systems import drawn_set, noisy


def systems(chosen):
    """Two systems of two seeds, on a part of one set."""

    def run(name, rate, seed):
        sentences = chosen(noisy(drawn_set(80), rate, seed))
        return EvaluatedRun(name, seed, f"{name}{seed}", sentences, *metrics_of(sentences))

    rates = {"base": 0.3, "other": 0.1}
    return [System(name, [run(name, rate, seed) for seed in (1, 2)], []) for name, rate in rates.items()]


def compare(chosen):
    return compare_systems(systems(chosen), group_sentences(chosen(drawn_set(80)), ""))


def test_a_group_of_lengths_is_what_a_set_of_its_sentences_would_be():
    def short(sentences):
        return [each for each in sentences if len(each.source.split()) < 6]

    groups = compare(list).against[0].lengths
    assert [group.name for group in groups] == ["1 to 5", "6 to 10", "11 to 15"]
    assert sum(group.size for group in groups) == 80
    alone = compare(short)
    assert [groups[0].base, groups[0].other] == pytest.approx([each.mean for each in alone.bleu])
    assert groups[0].interval == alone.against[0].bleu.interval
    assert groups[0].size == len(short(drawn_set(80))) > 10


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
