"""Minimum-Bayes-risk decoding: choose the candidate translation that agrees best with all candidates.

The candidates also serve as references, each with a weight (Kumar and Byrne 2004): its probability in an n-best list,
or equal weights for samples of the model (Eikema and Aziz 2020).
"""

import math

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

UTILITIES = {"bleu": BLEU(effective_order=True), "chrf": CHRF()}


def choose(candidates: list[str], weights: list[float], utility: str) -> int:
    """The index of the candidate with the highest expected utility; ties go to the first."""
    expected = expected_utilities(candidates, weights, utility)
    return max(range(len(candidates)), key=expected.__getitem__)


def expected_utilities(candidates: list[str], weights: list[float], utility: str) -> list[float]:
    """Each candidate's mean utility against all candidates as references, weighted by ``weights``.

    ``utility`` is ``bleu`` or ``chrf``: sacreBLEU's sentence score, from 0 to 100; equal texts, even empty ones, score
    100. Repeated texts are scored once, with the sum of their weights.
    """
    score, total = UTILITIES[utility].sentence_score, math.fsum(weights)
    pairs = list(zip(candidates, weights, strict=True))
    shares = {text: math.fsum(weight / total for each, weight in pairs if each == text) for text in candidates}
    utilities = {(a, b): 100.0 if a == b else score(a, [b]).score for a in shares for b in shares}
    # fsum does not depend on the order: rounding must not break ties.
    expected = {text: math.fsum(share * utilities[text, other] for other, share in shares.items()) for text in shares}
    return [expected[candidate] for candidate in candidates]
