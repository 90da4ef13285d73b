"""BLEU and chrF over distinct sources against all their references, computed and signed by sacreBLEU (Post 2018)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

BOOTSTRAP_SAMPLES = 1000
Streams = list[Any]  # of lists of str or None; sacreBLEU's own annotation forgets its None


@dataclass(frozen=True)
class Interval:
    """BLEU's 95 % confidence interval: sacreBLEU's bootstrap over sentences (Koehn 2004), its seed in the signature."""

    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Scores:
    """Scores from 0 to 100, each with sacreBLEU's signature.

    ``bleu`` and ``chrf`` count each distinct source once, against all its references. ``bleu_per_row`` counts every
    row of the file as a sentence with one reference, as other toolkits do.
    """

    bleu: float
    signature: str
    chrf: float
    chrf_signature: str
    bleu_per_row: float
    bleu_per_row_signature: str
    bleu_interval: Interval | None = None


def group_references(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The distinct sources, in the order in which they first come, and the references of each.

    An empty target is no reference: an empty reference would turn off BLEU's brevity penalty. It stays only where
    a source has nothing else.
    """
    groups: dict[str, list[str]] = {}
    for source, target in zip(sources, targets, strict=True):
        groups.setdefault(source, []).append(target)
    return list(groups), [list(filter(None, group)) or [""] for group in groups.values()]


def score(translations: list[str], references: list[list[str]], *, bootstrap: bool = False) -> Scores:
    """Score each translation against its own list of references; ``bootstrap`` adds the interval (one second).

    Raises ValueError for an empty set, a translation without references or lists of different lengths, none of
    which sacreBLEU itself checks.
    """
    if not translations or len(translations) != len(references) or not all(references):
        raise ValueError(f"{len(translations)} translations and {len(references)} lists of references cannot be scored")
    repeated = [t for t, group in zip(translations, references, strict=True) for _ in group]
    rows = [reference for group in references for reference in group]
    bleu, bleu_signature = _measure(BLEU(), translations, _streams(references))
    chrf, chrf_signature = _measure(CHRF(), translations, _streams(references))
    per_row, per_row_signature = _measure(BLEU(), repeated, [rows])
    return Scores(
        bleu=bleu,
        signature=bleu_signature,
        chrf=chrf,
        chrf_signature=chrf_signature,
        bleu_per_row=per_row,
        bleu_per_row_signature=per_row_signature,
        bleu_interval=bleu_interval(translations, references) if bootstrap else None,
    )


def bleu_interval(translations: list[str], references: list[list[str]]) -> Interval:
    """How far BLEU moves when the sentences of the set are drawn again with replacement."""
    metric = BLEU()
    result = metric.corpus_score(translations, _streams(references), n_bootstrap=BOOTSTRAP_SAMPLES)
    signature = str(metric.get_signature())
    facts = json.loads(result.format(width=4, signature=signature, is_json=True))
    mean, half_width = facts.get("confidence_mean", 0.0), facts.get("confidence_var", 0.0)  # left out when BLEU is 0
    return Interval(mean - half_width, mean + half_width, signature)


def _measure(metric: Any, translations: list[str], streams: Streams) -> tuple[float, str]:
    return float(metric.corpus_score(translations, streams).score), str(metric.get_signature())


def _streams(references: list[list[str]]) -> Streams:
    """sacreBLEU's form: the first reference of every sentence, then the second; None where a sentence has no more."""
    return [list(stream) for stream in zip_longest(*references)]
