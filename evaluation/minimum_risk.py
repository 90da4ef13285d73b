"""Minimum-Bayes-risk decoding: of a sentence's candidate translations, the one that agrees best with all of them.

The candidates themselves stand for the references, each with its weight (Kumar and Byrne 2004): the probability of an
entry of an n-best list, or the same for every sample of the model (Eikema and Aziz 2020).
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations

from sacrebleu.metrics.bleu import BLEU, MAX_NGRAM_ORDER
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_word_ngrams
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

BLEU_WORDS, CHRF_DEFAULTS = Tokenizer13a(), CHRF()


@dataclass(frozen=True)
class NGrams:
    """A text's n-grams, order by order, and how many of each order it has."""

    counts: list[Counter[str]]
    totals: list[int]


def choose(candidates: list[str], weights: list[float], utility: str) -> int:
    """The index of the candidate with the highest expected utility, the first of them if several have it."""
    expected = expected_utilities(candidates, weights, utility)
    return max(range(len(candidates)), key=expected.__getitem__)


def expected_utilities(candidates: list[str], weights: list[float], utility: str) -> list[float]:
    """Each candidate's mean utility, with the candidates as references in proportion to their weights.

    ``utility`` is ``bleu`` or ``chrf``, sacreBLEU's of one sentence, from 0 to 100; equal texts, even empty ones, have
    100. A text that comes several times is scored once and has the sum of its weights as a reference.
    """
    share = shares(candidates, weights)
    known = {text: ngrams(text, utility) for text in share}
    utilities = {(text, text): 100.0 for text in share}
    for one, other in combinations(share, 2):
        found = matches(known[one], known[other])
        utilities[one, other] = score(found, known[one], known[other], utility)
        utilities[other, one] = score(found, known[other], known[one], utility)
    # fsum: rounding, which depends on the order, must not break a tie.
    expected = {text: math.fsum(share[each] * utilities[text, each] for each in share) for text in share}
    return [expected[candidate] for candidate in candidates]


def shares(candidates: list[str], weights: list[float]) -> dict[str, float]:
    """The distinct texts and what each weighs, 1 in all; ValueError for weights that leave nothing to divide."""
    total = math.fsum(weights)
    if not 0 < total < math.inf or min(weights) < 0:
        raise ValueError(f"weights must be finite and at least 0, and one of them more: {weights}")
    texts: dict[str, list[float]] = {}
    for candidate, weight in zip(candidates, weights, strict=True):
        texts.setdefault(candidate, []).append(weight / total)
    return {text: math.fsum(parts) for text, parts in texts.items()}


def ngrams(text: str, utility: str) -> NGrams:
    """The 1- to 4-grams of BLEU's words, or the 1- to 6-grams of chrF's characters, which are all but spaces."""
    match utility:
        case "bleu":
            words = BLEU_WORDS(text.rstrip()).split()
            counts = [extract_word_ngrams(words, order) for order in range(1, MAX_NGRAM_ORDER + 1)]
        case "chrf":
            counts = extract_all_char_ngrams(text, CHRF.CHAR_ORDER)
        case _:
            raise ValueError(f"utility must be bleu or chrf, not {utility}")
    return NGrams(counts, [count.total() for count in counts])


def matches(one: NGrams, other: NGrams) -> list[int]:
    """How many n-grams of each order the texts share: the same in both directions, so counted once a pair."""
    return [
        sum(min(ours[ngram], theirs[ngram]) for ngram in ours.keys() & theirs.keys())
        for ours, theirs in zip(one.counts, other.counts, strict=True)
    ]


def score(found: list[int], candidate: NGrams, reference: NGrams, utility: str) -> float:
    """The utility from ``matches``, to the last bit what sacreBLEU's ``sentence_score`` gives for the texts."""
    ours, theirs = candidate.totals, reference.totals
    if utility == "bleu":
        return BLEU.compute_bleu(found, ours, ours[0], theirs[0], smooth_method="exp", effective_order=True).score
    # As sacreBLEU does, no n-grams are counted of an order that the reference does not have.
    orders = zip([n if m else 0 for n, m in zip(ours, theirs, strict=True)], theirs, found, strict=True)
    return CHRF_DEFAULTS._compute_f_score([count for order in orders for count in order])


def probabilities(log_probs: list[float]) -> list[float]:
    """The softmax: what each hypothesis of an n-best list weighs among them."""
    largest = max(log_probs)
    weights = [math.exp(log_prob - largest) for log_prob in log_probs]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
