"""Minimum-Bayes-risk decoding: choose the candidate translation that agrees best with all candidates.

The candidates also serve as references, each with a weight (Kumar and Byrne 2004): its probability in an n-best list,
or equal weights for samples of the model (Eikema and Aziz 2020).
"""

import math
from collections import Counter
from itertools import combinations

from sacrebleu.metrics.bleu import BLEU, MAX_NGRAM_ORDER
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_word_ngrams
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

BLEU_WORDS, CHRF_DEFAULTS = Tokenizer13a(), CHRF()
NGrams = tuple[list[Counter[str]], list[int]]  # the counts of a text's n-grams for each order, and their totals


def choose(candidates: list[str], weights: list[float], utility: str) -> int:
    """The index of the candidate with the highest expected utility; the first of equals."""
    expected = expected_utilities(candidates, weights, utility)
    return max(range(len(candidates)), key=expected.__getitem__)


def expected_utilities(candidates: list[str], weights: list[float], utility: str) -> list[float]:
    """Each candidate's mean utility against all candidates as references, in proportion to their weights.

    ``utility`` is ``bleu`` or ``chrf``: sacreBLEU's sentence score, from 0 to 100; equal texts, even empty ones, score
    100. Repeated texts are scored once, with the sum of their weights.
    """
    shares = weigh_texts(candidates, weights)
    ngrams = {text: count_ngrams(text, utility) for text in shares}
    utilities = {(text, text): 100.0 for text in shares}
    for one, other in combinations(shares, 2):
        (our_counts, ours), (their_counts, theirs) = ngrams[one], ngrams[other]
        matches = [(our & their).total() for our, their in zip(our_counts, their_counts, strict=True)]
        utilities[one, other] = compute_utility(matches, ours, theirs, utility)
        utilities[other, one] = compute_utility(matches, theirs, ours, utility)
    # fsum does not depend on the order: rounding must not break a tie.
    expected = {text: math.fsum(share * utilities[text, other] for other, share in shares.items()) for text in shares}
    return [expected[candidate] for candidate in candidates]


def weigh_texts(candidates: list[str], weights: list[float]) -> dict[str, float]:
    """The distinct texts and their weights, which sum to 1; ValueError for weights that cannot be normalised."""
    total = math.fsum(weights)
    if not 0 < total < math.inf or min(weights) < 0:
        raise ValueError(f"weights must be finite, at least 0, and not all 0: {weights}")
    pairs = list(zip(candidates, weights, strict=True))
    return {text: math.fsum(weight / total for each, weight in pairs if each == text) for text in candidates}


def count_ngrams(text: str, utility: str) -> NGrams:
    """The 1- to 4-grams of BLEU's words, or the 1- to 6-grams of chrF's characters, without spaces."""
    match utility:
        case "bleu":
            words = BLEU_WORDS(text.rstrip()).split()
            counts = [extract_word_ngrams(words, order) for order in range(1, MAX_NGRAM_ORDER + 1)]
        case "chrf":
            counts = extract_all_char_ngrams(text, CHRF.CHAR_ORDER)
        case _:
            raise ValueError(f"utility must be bleu or chrf, not {utility}")
    return counts, [count.total() for count in counts]


def compute_utility(matches: list[int], ours: list[int], theirs: list[int], utility: str) -> float:
    """From counts of n-grams by order, bit for bit sacreBLEU's ``sentence_score`` of a candidate and a reference."""
    match utility:
        case "bleu":
            return BLEU.compute_bleu(matches, ours, ours[0], theirs[0], smooth_method="exp", effective_order=True).score
        case "chrf":  # like sacreBLEU, ignore n-grams of an order that the reference does not have
            orders = zip([n if m else 0 for n, m in zip(ours, theirs, strict=True)], theirs, matches, strict=True)
            return CHRF_DEFAULTS._compute_f_score([count for order in orders for count in order])
        case _:
            raise ValueError(f"utility must be bleu or chrf, not {utility}")


def probabilities(log_probs: list[float]) -> list[float]:
    """The softmax: each hypothesis's probability within its n-best list."""
    largest = max(log_probs)
    weights = [math.exp(log_prob - largest) for log_prob in log_probs]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
