"""The report on runs as one page: report.html with report.css, report.js and the heat maps of attention inside."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.page.page import embed, fill, render_page
from configs.keys import DEFAULTS
from configs.load import flatten
from data.card import build_card, build_tables
from evaluation.attention_view.sentence import MAPS, ONE_SEARCH, heat_maps, translate_and_attend
from evaluation.attention_view.sentence import STYLE as MAPS_STYLE
from evaluation.comparison.differences import source_lengths
from evaluation.comparison.significance import Effects, of_system, pool
from evaluation.comparison.tables import differences, tables_of_one
from evaluation.groups import group_sentences
from experiment.evaluated_runs import ReportedRun, compare_reported
from experiment.load_run import MOST_PAIRS, load_run
from experiment.report.runs import ShownRun
from training.run.corpus import identify, load_identity, prepare_for_run
from training.run.layout import CONFIG, DATA

BODY, STYLE, *SCRIPTS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in ("report.html", "report.css", "charts.js", "sentences.js", "report.js")
)
WORDS = range(4, 21)  # lengths of sentences to show attention for


def render_report(runs: Sequence[ShownRun], set_name: str, count: int, command: str) -> str:
    """The page on runs that were read with ``set_name``, showing the attention of ``count`` sentences."""
    reported = [run.reported for run in runs if run.reported]
    scored = of_one_set(reported)
    names = [run.name for run in scored]
    contents = {
        "runs": [run.facts() for run in runs],
        "defaults": flatten(DEFAULTS),
        "comparison": compare(reported),
        "set": set_name,
        "scored": [place for place, run in enumerate(runs) if run.name in names],
        "lengths": by_length(scored),
        "sentences": sentences_of(scored),
        "attention": attention(scored, count),
        "cards": cards(runs),
        "commands": [*(line for run in runs for line in commands(run.folder)), command],
    }
    title = ", ".join(run.name for run in runs)
    data = [embed("contents", contents)]
    return render_page(f"Report: {title}", fill(BODY, title=title), MAPS_STYLE + STYLE, [MAPS, *SCRIPTS], data)


def of_one_set(found: Sequence[ReportedRun]) -> list[ReportedRun]:
    """The runs that translated the same sentences as the first one."""
    sources = [[each.source for each in run.sentences] for run in found]
    return [run for run, translated in zip(found, sources, strict=True) if translated == sources[0]]


def compare(found: Sequence[ReportedRun]) -> dict[str, Any]:
    """The tables of a comparison with the first run, or the reason why there is none."""
    if len(found) < 2:
        return {"problem": ""}
    try:
        comparison = compare_reported(found)
    except UserError as error:
        return {"problem": str(error)}
    against = [{"name": each.name, "tables": [*map(vars, tables_of_one(each))]} for each in comparison.against]
    return {"problem": "", "verdicts": vars(differences(comparison)), "against": against}


def by_length(scored: Sequence[ReportedRun]) -> list[dict[str, Any]]:
    """BLEU of each run in each group of source lengths, with a confidence interval over sentences."""
    if not scored:
        return []
    sentences, found = scored[0].sentences, []
    groups = group_sentences(sentences, str(scored[0].report.get("test_set", "")))
    for name, chosen in source_lengths(sentences).items():
        numbers = np.unique(groups[chosen], return_inverse=True)[1]
        estimates = [of_system(Effects.of([run.bleu.only(chosen)], numbers), pool([])) for run in scored]
        scores = [[each.value, max(0.0, each.interval.low), min(100.0, each.interval.high)] for each in estimates]
        found.append({"words": name, "sentences": int(chosen.sum()), "scores": scores})
    return found


def sentences_of(scored: Sequence[ReportedRun]) -> list[list[Any]]:
    """For every sentence: source, references, the translation of each run, and the chrF of each."""
    chrf = [run.chrf.scores(run.chrf.counts).round(1).tolist() for run in scored]
    rows = zip(*(run.sentences for run in scored), *chrf, strict=True)
    runs = len(scored)
    return [
        [row[0].source, row[0].references, [each.translation for each in row[:runs]], list(row[runs:])] for row in rows
    ]


def attention(scored: Sequence[ReportedRun], count: int) -> dict[str, Any]:
    """The first run's attention in some sentences, from worst to best by chrF, or the reason why there is none."""
    found: list[dict[str, Any]] = []
    if not scored or not count:
        return {"problem": "", "sentences": found}
    run, chrf = scored[0], scored[0].chrf.scores(scored[0].chrf.counts)
    lengths = [len(each.source.split()) for each in run.sentences]
    fitting = sorted((i for i, words in enumerate(lengths) if words in WORDS), key=lambda i: chrf[i])
    chosen = {fitting[place] for place in np.linspace(0, len(fitting) - 1, count).astype(int)} if fitting else set()
    try:
        ways = {f"{way.source}-{way.target}": way for way in run.config.data.directions}
        way = ways.get(str(run.report.get("direction", "")), run.config.data)
        loaded = load_run(run.run_dir, [f"data.source={way.source}", f"data.target={way.target}", *ONE_SEARCH])
        for index in sorted(chosen, key=lambda i: chrf[i]):
            attended = translate_and_attend(loaded.translator, loaded.params[0], run.sentences[index].source)
            uses = [maps.for_page() for maps in heat_maps(attended)]
            found.append({"source": attended.sentence, "translation": attended.translation, "uses": uses})
    except UserError as error:
        return {"problem": str(error), "sentences": found}
    return {"problem": "", "sentences": found}


def cards(runs: Sequence[ShownRun]) -> list[dict[str, Any]]:
    """The data card of each corpus, with the runs trained on it."""
    by_corpus: dict[str, list[ShownRun]] = {}
    for run in runs:
        by_corpus.setdefault(str(run.data.get("fingerprint", run.name)), []).append(run)
    return [{"runs": [run.name for run in group], **card(group[0])} for group in by_corpus.values()]


def card(run: ShownRun) -> dict[str, Any]:
    """The tables of a corpus, or the reason why there are none."""
    config, known = run.config, load_identity(run.folder / DATA)
    again = f"python scripts/inspect_data.py {shlex.quote(str(run.folder / CONFIG))}"
    if known is None or known.training_pairs > MOST_PAIRS:
        return {"problem": f"{again} prints it", "tables": []}
    try:
        prepared = prepare_for_run(run.folder, config.data, config.tokenizer, config.training.seed)
    except UserError as error:
        return {"problem": str(error), "tables": []}
    if identify(prepared.report).files != known.files:
        return {"problem": f"the corpus is no longer the one that {run.folder / DATA} records", "tables": []}
    return {"problem": "", "tables": [*map(vars, build_tables(build_card(config.data, config.tokenizer, prepared)))]}


def commands(folder: Path) -> list[str]:
    """The commands that train and score a run again, in a new directory."""
    again = f"{folder}-again"
    train = ["python", "train.py", str(folder / CONFIG), f"run_dir={again}"]
    return [shlex.join(train), shlex.join(["python", "eval.py", again])]
