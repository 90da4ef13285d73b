"""What a run's heat maps mean, with intervals for other sentences: as tables and as a figure."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from common.text_table import Table
from evaluation.comparison.significance import Effects, Estimate, of_system, pool
from evaluation.faithfulness.erasure import FEWEST_WORDS, rank_correlation, same_first, study
from evaluation.faithfulness.heads import Head, changes_without
from evaluation.sentences import Sentence
from evaluation.translate import Translator, read
from model.transformer import Params


@dataclass(frozen=True)
class Findings:
    """Results for one run: how well each method agrees with erasure, and the BLEU that each head is worth."""

    run: str
    sentences: int
    correlation: dict[str, Estimate]
    same_first: dict[str, Estimate]
    heads: dict[Head, Estimate]


def find(
    run: str, translator: Translator, params: Params, sentences: Sequence[Sentence], set_name: str, count: int
) -> Findings | None:
    """Erase words in up to ``count`` sentences, spaced evenly among those long enough; None if there are none."""
    long = [each for each in sentences if len(each.source.split()) >= FEWEST_WORDS and each.translation]
    if not long:
        return None
    chosen = [long[place] for place in np.linspace(0, len(long) - 1, min(count, len(long))).round().astype(int)]
    sources = translator.encode_sources([read(each.source) for each in chosen])
    targets = translator.tokenizer.encode([each.translation for each in chosen])
    studied = list(study(translator, params, list(zip(sources, targets, strict=True))))
    correlation, first = (
        dict(zip(studied[0].methods, map(over_sentences, np.array([*map(measure, studied)]).T), strict=True))
        for measure in (rank_correlation, same_first)
    )
    heads = dict(changes_without(translator, params, sentences, set_name))
    return Findings(run, len(chosen), correlation, first, heads)


def over_sentences(values: Float[np.ndarray, " sentences"]) -> Estimate:
    """The mean, with the interval for this model and other sentences."""
    return of_system(Effects(values.mean(keepdims=True), (values - values.mean())[None]), pool([]))


def agreement(found: Sequence[Findings]) -> Table:
    note = (
        f"Over {found[0].sentences} sentences, with 95 % intervals for others: Spearman's rank correlation, over the "
        "words of a source, between the value that a method gives to each word and the log-probability that a target "
        "word loses if it is erased; and the share of target words for which both rank the same source word first."
    )
    header = ["method", *(f"{kind}: {each.run}" for kind in ("rank correlation", "same first, %") for each in found)]
    rows = [
        [name, *(plus_minus(each.correlation[name], ".2f") for each in found)]
        + [plus_minus(each.same_first[name], ".0f", 100.0) for each in found]
        for name in found[0].correlation
    ]
    return Table("Heat maps and erasure", note, header, rows)


def heads(found: Sequence[Findings]) -> Table:
    note = "The change of BLEU, with greedy search, without this head. The same head of two runs need not be similar."
    rows = [
        [head.attention, str(head.head + 1), *(plus_minus(each.heads[head], "+.2f") for each in found)]
        for head in found[0].heads
    ]
    return Table("Heads", note, ["attention, layer", "head", *(each.run for each in found)], rows)


def plus_minus(found: Estimate, form: str, scale: float = 1.0) -> str:
    return f"{scale * found.value:{form}} ± {scale * half(found):{form.lstrip('+')}}"


def half(found: Estimate) -> float:
    """Half of the interval's width."""
    return (found.interval.high - found.interval.low) / 2


def draw(found: Sequence[Findings]) -> bytes:
    """A PNG picture: left, the rank correlation of each method except single heads; right, BLEU without each head."""
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = [name for name in found[0].correlation if ", head" not in name]
    uses = list(dict.fromkeys(head.attention for head in found[0].heads))
    for number, run in enumerate(found):
        style: dict[str, Any] = {"color": f"C{number}", "fmt": "o", "markersize": 4, "linewidth": 1}
        shift = 0.24 * (number - (len(found) - 1) / 2)
        for row, name in enumerate(names):
            each, label = run.correlation[name], run.run if row == 0 else None
            left.errorbar(each.value, row + shift, xerr=half(each), label=label, **style)
        for head, each in run.heads.items():
            place = uses.index(head.attention) + shift + 0.05 * head.head
            right.errorbar(each.value, place, xerr=half(each), **style)
    left.set_title("Rank correlation with what erasing a word costs", fontsize=11)
    right.set_title("Change of BLEU without one head", fontsize=11)
    left.legend(frameon=False)
    for axes, rows in ((left, names), (right, uses)):
        axes.set_yticks(range(len(rows)), rows)
        axes.invert_yaxis()
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=130)
    return picture.getvalue()
