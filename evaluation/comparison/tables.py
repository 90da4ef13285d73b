"""A comparison as tables of text."""

import re
from collections.abc import Sequence
from dataclasses import replace

from common.text_table import Table, as_text
from evaluation.comparison.compare import Against, Comparison
from evaluation.comparison.differences import Change
from evaluation.comparison.significance import Interval

HOW = (
    "Intervals of 95 % and p are for other seeds and other sentences together; if no system has two runs, for other "
    "sentences only: the effect of another seed is not known. p is adjusted by Holm's method for the number of systems."
)


def describe(comparison: Comparison) -> str:
    """The tables as text for a terminal."""
    return "\n\n".join(map(as_text, tables_of(comparison)))


def tables_of(comparison: Comparison) -> list[Table]:
    """The tables of all systems, then those that compare each system with the baseline."""
    each = (
        replace(table, note=f"In {against.name}. {table.note}".rstrip())
        for against in comparison.against
        for table in tables_of_one(against)
    )
    return [scores(comparison), differences(comparison), *each]


def scores(comparison: Comparison) -> Table:
    """The scores of each system."""
    header = ["system", "runs", "BLEU", "interval", "chrF", "interval"]
    rows = [
        [name, str(len(bleu.runs)), f"{bleu.mean:.2f}", span(bleu.interval), f"{chrf.mean:.2f}", span(chrf.interval)]
        for name, bleu, chrf in zip(comparison.systems, comparison.bleu, comparison.chrf, strict=True)
    ]
    return Table("Scores", " ".join(comparison.notes), header, rows)


def differences(comparison: Comparison) -> Table:
    """How much each system differs from the baseline, with verdicts."""
    header = ["system", "metric", "difference", "interval", "p", "verdict"]
    rows = [
        [
            *(against.name, metric, f"{found.difference:+.2f}"),
            *(span(found.interval, "+"), f"{found.p_adjusted:.4f}", found.verdict),
        ]
        for against in comparison.against
        for metric, found in (("BLEU", against.bleu), ("chrF", against.chrf))
    ]
    return Table("Differences", f"From the baseline, {comparison.systems[0]}. {HOW}", header, rows)


def tables_of_one(against: Against) -> list[Table]:
    """Where a system differs from the baseline; a table without rows is left out."""
    keys = [re.split(": | → ", line, maxsplit=2) for line in against.config]  # "key: old → new"
    groups = [
        [
            *(each.name, str(each.size), f"{each.base:.2f}", f"{each.other:.2f}"),
            *(f"{each.other - each.base:+.2f}", span(each.interval, "+")),
        ]
        for each in against.lengths
    ]
    header = ["words", "sentences", "baseline", "here", "difference", "interval"]
    tables = [
        Table("What differs", "", ["key", "baseline", "here"], keys),
        Table("BLEU by words of the source", "", header, groups),
        sentences("Largest gains", against.gains),
        sentences("Largest losses", against.losses),
    ]
    return [table for table in tables if table.rows]


def sentences(title: str, found: Sequence[Change]) -> Table:
    """Four rows for each sentence."""
    rows = []
    for each in found:
        rows.append([f"{each.chrf:+.1f}", "source", each.source])
        rows += [["", "reference", reference] for reference in each.references]
        rows += [["", "baseline", each.base], ["", "here", each.other]]
    return Table(title, "By chrF of the sentence.", ["chrF", "", "text"], rows)


def span(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"
