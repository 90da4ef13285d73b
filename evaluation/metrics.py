"""BLEU and chrF over distinct sources against all their references, computed and signed by sacreBLEU (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

LONG, LEAST_LONG = 4, 0.5  # BLEU's longest n-gram, and the least share of sentences that long: 0.96 is usual
Streams = list[Any]  # lists of str or None; sacreBLEU's own annotation omits the None


@dataclass(frozen=True)
class BleuInterval:
    """BLEU's 95 % interval for this model and other sentences, and the number of groups (see evaluation/groups.py)."""

    low: float
    high: float
    groups: int


@dataclass(frozen=True)
class Scores:
    """Scores from 0 to 100, each with sacreBLEU's signature."""

    bleu: float  # like chrF, over distinct sources, each against all its references
    signature: str
    chrf: float
    chrf_signature: str
    bleu_per_row: float  # every row of the file is a sentence with one reference, as in other toolkits
    bleu_per_row_signature: str
    bleu_interval: BleuInterval | None = None
    bleu_note: str | None = None  # why BLEU means little on this set


def group_references(sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The distinct sources, in order of first occurrence, and the references of each."""
    groups: dict[str, list[str]] = {}
    for source, target in zip(sources, targets, strict=True):
        groups.setdefault(source, []).append(target)
    # An empty reference would turn off BLEU's brevity penalty. A source with nothing else keeps one.
    return list(groups), [list(filter(None, group)) or [""] for group in groups.values()]


def score(translations: list[str], references: list[list[str]]) -> Scores:
    """Score each translation against its own list of references, at least one; computes no interval."""
    streams = reference_streams(references)
    repeated = [text for text, group in zip(translations, references, strict=True) for _ in group]
    bleu, chrf = _measure(BLEU(), translations, streams), _measure(CHRF(), translations, streams)
    bleu_per_row = _measure(BLEU(), repeated, [list(chain(*references))])
    return Scores(*bleu, *chrf, *bleu_per_row, bleu_note=note_on_bleu(references))


def note_on_bleu(references: Sequence[list[str]]) -> str | None:
    """A warning if most sentences have no reference of four words: even perfect translations may get BLEU 0."""
    split = BLEU().tokenizer
    long = sum(any(len(split(text).split()) >= LONG for text in group) for group in references)
    if long >= LEAST_LONG * len(references):
        return None
    short = f"only {long} of {len(references)} sentences have references that long"
    return f"BLEU counts up to four words in a row, and {short}: read chrF instead"


def reference_streams(references: Sequence[list[str]]) -> Streams:
    """References as sacreBLEU expects them: all first ones, all second ones, …, with None where one is missing."""
    return [list(stream) for stream in zip_longest(*references)]


def _measure(metric: Any, translations: list[str], streams: Streams) -> tuple[float, str]:
    return float(metric.corpus_score(translations, streams).score), str(metric.get_signature())
