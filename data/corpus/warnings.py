"""Signs that something is wrong with a source of pairs: warnings before training or scoring."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from common.text import in_brief
from data.config import DataConfig
from data.corpus.language import describe_languages, sample
from data.corpus.report import SourceAccount
from data.corpus.splits import is_short
from data.pairs import Pairs
from data.sources.report import SourceReport, describe_unscored
from data.sources.source import form_of
from data.sources.table import describe_first_pair

FEWEST_PAIRS, LEAST_CORRELATION = 100, 0.3  # measured corpora have 0.8, or at most 0.23 if shifted by a line
LEAST_SPREAD = 6  # characters between the quartiles of lengths: lengths of single words mean little
MANY_MISMATCHED = 0.1
# What é, ñ, ¿ and “ become if UTF-8 is read as latin-1 or cp1252. Characters that can end a word in capitals, as in
# "IRMÃ”", are no evidence.
MISREAD = re.compile("Ã[\u0080-\u0084\u0086-\u0091\u0098-\u00ba\u00bc-\u00bf‚ƒ„†‡ˆ‰Š‹ŒŽ‘“•˜™š›œžŸ]|Â[¿¡]|â(?:€|\u0080)")


def find_warnings(config: DataConfig, loaded: Sequence[tuple[Pairs, SourceReport]]) -> list[str]:
    """A line for each sign that something is wrong with a source, and for each held-out set with unscored rows."""
    lines = [line for pairs, report in loaded for line in find_source_warnings(config, pairs, report)]
    held_out = [report for _, report in loaded if not isinstance(report, SourceAccount)]
    unscored = [f"{report.file}: {line}" for report in held_out if (line := describe_unscored(report))]
    return [*lines, *unscored]


def find_source_warnings(config: DataConfig, pairs: Pairs, report: SourceReport, advice: str = "") -> Iterator[str]:
    """The lines on one source; ``advice`` replaces training's advice about swapped sides."""
    if isinstance(report, SourceAccount) and report.mismatched > MANY_MISMATCHED * report.rows:
        dropped = f"{report.mismatched} of {report.rows} rows are dropped because one side is far longer than the other"
        doubt = "are its columns what data.columns says? If they are, a higher data.max_length_ratio keeps more"
        yield f"{report.file}: {dropped}: {doubt}"
    yield from describe_languages(config, pairs, report.file, advice)
    correlation = correlate_lengths(pairs)
    if correlation is not None and correlation < LEAST_CORRELATION:
        sign = f"long sources have no longer targets than short ones (correlation of lengths {correlation:.2f})"
        yield f"{report.file}: {sign}: are its lines parallel?"
    if misread := find_misread(pairs):
        sign = f"{len(misread)} of {2 * len(pairs)} sentences look like UTF-8 read in another encoding"
        yield f"{report.file}: {sign} ({in_brief(misread[0], 60)}): fix these lines, or convert the file again"
    if form_of(report.file) == "table" and (first := describe_first_pair(config, Path(report.file))):
        yield first


def find_short_sets(taken_out: dict[str, int], asked: int) -> list[str]:
    """A line for each set taken out of the training pairs that has far fewer than ``asked`` pairs."""
    return [
        f"data.{split}: only {pairs} of the requested {asked} pairs can be taken out of the training pairs, because "
        f"the others share too many sentences: name a file in data.{split}"
        for split, pairs in taken_out.items()
        if is_short(pairs, asked)
    ]


def correlate_lengths(pairs: Pairs) -> float | None:
    """The correlation of both sides' log-lengths in characters, in a sample; None if it would mean little."""
    lengths = np.array([(len(one), len(other)) for one, other in sample(pairs) if one and other]).reshape(-1, 2)
    if len(lengths) < FEWEST_PAIRS or (np.subtract(*np.percentile(lengths, (75, 25), axis=0)) < LEAST_SPREAD).any():
        return None
    return float(np.corrcoef(np.log(lengths), rowvar=False)[0, 1])


def find_misread(pairs: Pairs) -> list[str]:
    """The sentences, on either side, with letters that result from reading UTF-8 as another encoding."""
    sentences = chain(pairs.sources, pairs.targets)
    suspects = (s for s in sentences if not s.isascii() and ("Ã" in s or "Â" in s or "â" in s))  # faster than a search
    return [sentence for sentence in suspects if MISREAD.search(sentence)]
