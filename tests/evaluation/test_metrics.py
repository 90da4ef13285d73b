"""Scores against sacreBLEU called directly, and against numbers worked out by hand."""

import math
from itertools import chain
from typing import Any

import pytest
import sacrebleu

from evaluation.metrics import group_references, score

TRANSLATIONS = ["the cat sat on the mat", "hello there world", "a third sentence stands here now"]
REFERENCES = [
    ["the cat sat on the mat .", "a cat is on the mat"],
    ["hello there world"],
    ["the third sentence is here", "one third sentence", "a third sentence stands here"],
]
STREAMS: list[Any] = [
    ["the cat sat on the mat .", "hello there world", "the third sentence is here"],
    ["a cat is on the mat", None, "one third sentence"],
    [None, None, "a third sentence stands here"],
]


def test_scores_are_sacrebleus():
    scores = score(TRANSLATIONS, REFERENCES)
    assert scores.bleu == sacrebleu.BLEU().corpus_score(TRANSLATIONS, STREAMS).score
    assert scores.chrf == sacrebleu.CHRF().corpus_score(TRANSLATIONS, STREAMS).score
    version = sacrebleu.__version__
    assert scores.signature == f"nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    assert scores.chrf_signature == f"nrefs:var|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}"
    repeated, rows = [TRANSLATIONS[i] for i in (0, 0, 1, 2, 2, 2)], [list(chain(*REFERENCES))]
    assert scores.bleu_per_row == sacrebleu.BLEU().corpus_score(repeated, rows).score
    assert scores.bleu_per_row_signature.startswith("nrefs:1|")


def test_scores_by_hand():
    """Equal texts; a brevity penalty of exp(1 - 8 / 5); and precisions 3/4, 2/3, 1/2 and, smoothed, 1/2."""
    same = score(TRANSLATIONS, [[text] for text in TRANSLATIONS])
    assert (same.bleu, same.chrf, same.bleu_per_row) == pytest.approx((100, 100, 100))
    assert score(["a b c d e"], [["a b c d e f g h"]]).bleu == pytest.approx(100 * math.exp(1 - 8 / 5))
    assert score(["a b c x"], [["a b c d"]]).bleu == pytest.approx(100 * (3 / 4 * 2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4))


def test_a_sentence_with_fewer_references_keeps_its_brevity_penalty():
    """Were the missing second reference '', it would be the closest in length and the penalty would vanish."""
    scores = score(["a b c d e", "1 2 3 4 5"], [["a b c d e f g h"], ["1 2 3 4 5 6 7 8", "1 2 3 4 5 6 7 8 9"]])
    assert scores.bleu == pytest.approx(100 * math.exp(1 - 16 / 10))


@pytest.mark.parametrize(
    ("references", "long"),
    [
        ([["perro"], ["gato negro"], ["la casa roja"]], 0),
        ([["uno"], ["dos", "un par de ellos"], ["tres"]], 1),  # a longer second reference counts
        ([["¡Sí, claro!"], ["no"], ["no"]], 1),  # five tokens of 13a: each mark is one
        ([["我不知道你在说什么"], ["我们明天早上去学校"]], 0),  # one word, for lack of spaces
    ],
)
def test_bleu_of_words_alone_has_a_note(references, long):
    """Each translation is right. Without a single run of four words, BLEU is 0 by definition."""
    scores = score([group[-1] for group in references], references)
    assert scores.chrf == pytest.approx(100) and (scores.bleu == 0) == (long == 0)
    assert scores.bleu_note == (
        f"BLEU counts up to four words in a row, and only {long} of {len(references)} sentences have references "
        "that long: read chrF instead"
    )


def test_bleu_of_sentences_has_no_note():
    assert score(TRANSLATIONS, REFERENCES).bleu_note is None
    assert score(["a b c d", "a"], [["a b c d"], ["a"]]).bleu_note is None  # half of them have four words


def test_references_are_grouped_by_distinct_source_in_first_seen_order():
    """An empty reference counts only where a source has no other."""
    sources, references = group_references(["b", "a", "b", "c", "c"], ["1", "2", "3", "", "4"])
    assert (sources, references) == (["b", "a", "c"], [["1", "3"], ["2"], ["4"]])
    assert group_references(["a", "a"], ["", ""]) == (["a"], [[""]])
    assert score(["some words", "a b c d"], [[""], ["a b c d"]]).bleu < 100
