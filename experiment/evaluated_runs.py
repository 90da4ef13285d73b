"""Runs with scores of one test set, read back for a comparison."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import read_json_object
from configs.keys import KEYS
from configs.load import find_differences, load_run_config
from configs.schema import RunConfig
from evaluation.comparison.compare import Comparison, EvaluatedRun, System, compare_systems, metrics_of
from evaluation.groups import group_sentences
from evaluation.report import sentences_beside
from evaluation.sentences import read_sentences
from experiment.reports import find_mismatch, own_report
from training.run.corpus import describe_change, load_identity
from training.run.layout import DATA, REPORTS

SAME = {"test_set_sha256": "test set", "signature": "signature of BLEU", "chrf_signature": "signature of chrF"}


@dataclass(frozen=True)
class ReportedRun(EvaluatedRun):
    """A run with its report; its config has the report's search and precision."""

    run_dir: Path
    config: RunConfig
    report: dict[str, Any]
    trained_on: list[str] = field(default_factory=list)  # SHA-256s of the training files; empty: not known


def read_reported(argument: str, set_name: str, name: str = "") -> ReportedRun:
    """Read a run's report on a set, or any report by its path; it is called ``name`` or, without one, by its path.

    UserError if it is missing, damaged, or does not match its sentences.
    """
    path, is_report = Path(argument), argument.endswith(".json")
    report_path = path if is_report else own_report(path, set_name)
    report = read_json_object(report_path)
    run_dir = Path(str(report.get("run") or report_path.parent.parent)) if is_report else path
    config = load_run_config(run_dir)
    if not report:
        again = "python eval.py" if set_name == "test" else f"give --set a name in {path / REPORTS}, or python eval.py"
        raise UserError(f"{report_path} is missing or damaged: {again} {run_dir}")
    lines = sentences_beside(report_path)
    if not lines.exists():
        raise UserError(f"{lines} is missing, as in runs of older versions: evaluate {run_dir} again")
    sentences = read_sentences(lines)
    try:
        reported = as_reported(config, report)
        own_set = "" if is_report else set_name
        problem = find_mismatch(run_dir, report_path, reported.decoding.checkpoint, own_set)
        model = f"{run_dir.resolve()} {report['step']}"
        corpus, scores = load_identity(run_dir / DATA), metrics_of(sentences)
        trained_on = corpus.files["train"] if corpus else []
        named = name or argument, config.training.seed, model
        run = ReportedRun(*named, sentences, *scores, run_dir, reported, report, trained_on)
        check_scores(report_path, run)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # values of other types
        raise UserError(f"{report_path} is damaged: evaluate {run_dir} again") from error
    if problem:
        raise UserError(f"{report_path} {problem}: evaluate {run_dir} again")
    return run


def check_scores(path: Path, run: ReportedRun) -> None:
    """UserError if the sentences do not match the report's scores, as after a kill between writing the two files."""
    found = [metric.score if run.sentences else 0.0 for metric in (run.bleu, run.chrf)]
    if any(abs(score - run.report.get(key, -1.0)) > 1e-6 for key, score in zip(("bleu", "chrf"), found, strict=True)):
        raise UserError(f"{path} and {sentences_beside(path).name} do not belong together: evaluate the run again")


def as_reported(config: RunConfig, report: dict[str, Any]) -> RunConfig:
    """The config with the report's search and precision; keys that the report lacks stay unchanged."""
    known = {key: value for key, value in report.get("decoding", {}).items() if key in vars(config.decoding)}
    decoding, model = replace(config.decoding, **known), replace(config.model, **report.get("precision", {}))
    return replace(config, decoding=decoding, model=model)


def compare_reported(found: Sequence[ReportedRun]) -> Comparison:
    """Compare the systems of these runs with the first run's system."""
    groups = group_sentences(found[0].sentences, str(found[0].report.get("test_set", "")))
    return compare_systems(group_by_system(found), groups)


def group_by_system(found: Sequence[ReportedRun]) -> list[System]:
    """Group runs that differ only in their seed into systems; the first run's system is the baseline and comes first.

    If all runs belong to one system, each is compared on its own. UserError for runs that cannot be compared.
    """
    groups: list[list[ReportedRun]] = []
    for run in found:
        check_comparable(found[0], run)
        group = next((group for group in groups if not changes(group[0], run)), [])
        if same := next((other for other in group if other.seed == run.seed), None):
            raise UserError(f"{same.name} and {run.name} do not differ, not even in training.seed: name one of them")
        if not group:
            groups.append(group)
        group.append(run)
    if len(groups) == 1:
        groups = [[run] for run in found]
    return [system_of(groups[0], group) for group in groups]


def check_comparable(base: ReportedRun, other: ReportedRun) -> None:
    problem = f"{base.name} and {other.name} cannot be compared: "
    for key, meaning in SAME.items():
        if base.report.get(key) != other.report.get(key):
            values = " and ".join(str(each.report.get(key))[:60] for each in (base, other))
            raise UserError(f"{problem}the {meaning} differs, {values}; evaluate both in the same way")
    if [each.source for each in base.sentences] != [each.source for each in other.sentences]:
        raise UserError(f"{problem}their sources differ; evaluate both in the same way")


def changes(base: ReportedRun, other: ReportedRun, seed: bool = False) -> list[str]:
    """The differences between two configs that affect translations, including the seed if ``seed``.

    Another corpus in files of the same names is a difference, too.
    """
    found = find_differences(base.config, other.config)
    lines = [line for key, line in found.items() if KEYS[key].metadata["compared"] and (seed or key != "training.seed")]
    if not base.trained_on or not other.trained_on or "data.train" in found:
        return lines
    return lines + describe_change("data.train", base.trained_on, other.trained_on)


def system_of(base: list[ReportedRun], group: list[ReportedRun]) -> System:
    seeds = [run.seed for run in group]
    shares_seed = bool({run.seed for run in base} & set(seeds))
    names = [run.name for run in group]
    ordered = sorted(group, key=lambda run: run.seed)
    return System(name_system(names, seeds), list(ordered), changes(base[0], group[0], seed=not shares_seed))


def name_system(names: list[str], seeds: list[int]) -> str:
    """A run's name or, for several runs, the name without the seed at its end, followed by the seeds."""
    if len(names) == 1:
        return names[0]
    stems = {re.sub(r"[-_.,]?(seed)?[-_.=]?[0-9]+$", "", name) for name in names}
    return f"{names[0] if len(stems) > 1 else stems.pop()} (seeds {', '.join(map(str, seeds))})"
