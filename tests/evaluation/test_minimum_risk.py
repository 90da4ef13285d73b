"""Expected utilities against sacreBLEU called for every pair, and choices worked out by hand."""

import math

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from evaluation.minimum_risk import choose, expected_utilities

UTILITIES = ("bleu", "chrf")
SENTENCE_SCORE = {"bleu": sacrebleu.BLEU(effective_order=True).sentence_score, "chrf": sacrebleu.CHRF().sentence_score}
CANDIDATES = [
    "Tom no quiere ir a casa.",
    "Tom no quiere volver a su casa.",
    "Tom no se quiere ir a casa.",
    "Tom no quiere ir a casa .",  # to BLEU the same text as the first
    "¡No!",
    "&quot;",
    "",
]
WEIGHTS = [0.5, 1.0, 2.0, 0.25, 3.0, 1.5, 0.75]

both = pytest.mark.parametrize("utility", UTILITIES)
texts = st.lists(st.sampled_from(["Tom", "Ana", "come", "aquí", "3.14", ".", "¿", "&amp;"]), max_size=6).map(" ".join)
weighted = st.lists(st.tuples(texts, st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=5)


def by_pairs(candidates: list[str], weights: list[float], utility: str) -> list[float]:
    """The definition: every pair scored alone, with as many references as there are candidates."""

    def score(candidate: str, reference: str) -> float:
        return 100.0 if candidate == reference else SENTENCE_SCORE[utility](candidate, [reference]).score

    total = math.fsum(weights)
    pairs = list(zip(candidates, weights, strict=True))
    return [math.fsum(weight / total * score(each, reference) for reference, weight in pairs) for each in candidates]


@both
@given(pairs=weighted.filter(lambda pairs: any(weight for _, weight in pairs)))
def test_any_candidates_are_scored_like_every_pair_alone(utility, pairs):
    candidates, weights = [text for text, _ in pairs], [weight for _, weight in pairs]
    expected = by_pairs(candidates, weights, utility)
    assert expected_utilities(candidates, weights, utility) == pytest.approx(expected)
    assert expected[choose(candidates, weights, utility)] == pytest.approx(max(expected))


@both
def test_only_the_proportion_of_the_weights_matters_and_a_tie_goes_to_the_first(utility):
    """Of three texts with nothing in common, in every order: no rounding may prefer one."""
    expected = expected_utilities(CANDIDATES, WEIGHTS, utility)
    for scale in (1e-300, 3.0, 1e300):
        scaled = [weight * scale for weight in WEIGHTS]
        assert expected_utilities(CANDIDATES, scaled, utility) == pytest.approx(expected)
    for candidates in (["uno", "sé", "ayer"], ["ayer", "uno", "sé"], ["sé", "ayer", "uno"]):
        assert choose(candidates, [0.1, 0.1, 0.1], utility) == 0
        assert choose(candidates, [0.1, 0.2, 0.2], utility) == 1
