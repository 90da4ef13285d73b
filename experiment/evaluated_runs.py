"""Runs with scores of one test set, read back for a comparison."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from common.errors import UserError, write_note
from common.files import read_json_object
from configs.keys import KEYS
from configs.load import find_differences, load_run_config
from configs.schema import RunConfig
from data.corpus.word_counts import WordCounts, load_word_counts
from evaluation.comparison.compare import EvaluatedRun, System
from evaluation.conditions import sentences_beside
from evaluation.sentences import read_sentences
from model.config import DecodingConfig

SAME = {"test_set_sha256": "test set", "signature": "signature of BLEU", "chrf_signature": "signature of chrF"}


@dataclass(frozen=True)
class Evaluated:
    """A run's report and what belongs to it; the config has the search and the precision of the report."""

    run: EvaluatedRun
    run_dir: Path
    config: RunConfig
    report: dict[str, Any]


def read_evaluated(argument: str, set_name: str, name: str = "") -> Evaluated:
    """Read a run's report on a set, or any report by its path; it goes by ``name`` or, without one, by its path.

    UserError if it is not there, whole and consistent.
    """
    path = Path(argument)
    report_path = path if path.suffix == ".json" else path / "eval" / f"{set_name}.json"
    report = read_json_object(report_path)
    run_dir = Path(str(report.get("run") or report_path.parent.parent)) if path.suffix == ".json" else path
    config = load_run_config(run_dir)
    if not report:
        again = "python eval.py" if set_name == "test" else f"give --set a name in {path / 'eval'}, or python eval.py"
        raise UserError(f"{report_path} is missing or damaged: {again} {run_dir}")
    lines = sentences_beside(report_path)
    if not lines.exists():
        raise UserError(f"{lines} is missing, as in runs of older versions: evaluate {run_dir} again")
    run = EvaluatedRun(name or argument, config.training.seed, read_sentences(lines))
    try:
        check_scores(report_path, report, run)
        return Evaluated(run, run_dir, as_reported(config, report), report)
    except (AttributeError, TypeError, ValueError) as error:  # values of other types
        raise UserError(f"{report_path} is damaged: evaluate {run_dir} again") from error


def check_scores(path: Path, report: dict[str, Any], run: EvaluatedRun) -> None:
    """UserError if the sentences are not those that the report scores, as after a kill between the two files."""
    found = [metric.score if run.sentences else 0.0 for metric in (run.bleu, run.chrf)]
    if any(abs(score - report.get(name, -1.0)) > 1e-6 for name, score in zip(("bleu", "chrf"), found, strict=True)):
        raise UserError(f"{path} and {sentences_beside(path).name} do not belong together: evaluate the run again")


def as_reported(config: RunConfig, report: dict[str, Any]) -> RunConfig:
    """The config with the search and precision of the report; keys that the report lacks stay."""
    names = {field.name for field in fields(DecodingConfig)}
    decoding = {key: value for key, value in report.get("decoding", {}).items() if key in names}
    return replace(
        config,
        decoding=replace(config.decoding, **decoding),
        model=replace(config.model, **report.get("precision", {})),
    )


def group_by_system(found: Sequence[Evaluated]) -> list[System]:
    """Runs that differ by their seed alone are one system; the first run's is the baseline, and first.

    If all runs are one system, each is compared by itself. UserError for runs that cannot be compared.
    """
    for other in found[1:]:
        check_comparable(found[0], other)
    groups: list[list[Evaluated]] = []
    for run in found:
        group = next((group for group in groups if not changes(group[0], run)), None)
        if group is None:
            groups.append([run])
        else:
            check_seeds(group, run)
            group.append(run)
    if len(groups) == 1:
        groups = [[run] for run in found]
    return [system_of(groups[0], group) for group in groups]


def check_comparable(base: Evaluated, other: Evaluated) -> None:
    for key, meaning in SAME.items():
        if base.report.get(key) != other.report.get(key):
            values = [str(each.report.get(key))[:60] for each in (base, other)]
            raise UserError(
                f"{base.run.name} and {other.run.name} cannot be compared: the {meaning} differs, "
                f"{values[0]} and {values[1]}; evaluate both alike"
            )
    if [each.source for each in base.run.sentences] != [each.source for each in other.run.sentences]:
        raise UserError(
            f"{base.run.name} and {other.run.name} cannot be compared: their sources differ; evaluate both alike"
        )


def check_seeds(group: list[Evaluated], run: Evaluated) -> None:
    for other in group:
        if other.run.seed == run.run.seed:
            raise UserError(
                f"{other.run.name} and {run.run.name} differ by nothing, not even by training.seed: name one"
            )


def changes(base: Evaluated, other: Evaluated, seed: bool = False) -> list[str]:
    """The lines of ``find_differences`` that matter to translations, with or without the seed's."""
    found = find_differences(base.config, other.config)
    return [line for key, line in found.items() if KEYS[key].compared and (seed or key != "training.seed")]


def system_of(base: list[Evaluated], group: list[Evaluated]) -> System:
    runs = [each.run for each in group]
    seeds = [run.seed for run in runs]
    shares_seed = {each.run.seed for each in base} & set(seeds)
    config = changes(base[0], group[0], seed=not shares_seed)
    return System(name_system([run.name for run in runs], seeds), runs, config)


def name_system(names: list[str], seeds: list[int]) -> str:
    """A run's name or, for several, that without the seed at its end, and the seeds."""
    if len(names) == 1:
        return names[0]
    stems = {re.sub(r"[-_.,]?(seed)?[-_.=]?[0-9]+$", "", name) for name in names}
    return f"{names[0] if len(stems) > 1 else stems.pop()} (seeds {', '.join(map(str, seeds))})"


def load_frequencies(base: Evaluated) -> WordCounts | None:
    """How often the baseline's training has each word of the language that it translates into; a note if none tells."""
    direction = base.report.get("direction") or f"{base.config.data.source}-{base.config.data.target}"
    side = "target" if direction.endswith(f"-{base.config.data.target}") else "source"
    found = load_word_counts(base.run_dir, side)
    if found is None:
        write_note(f"note: {base.run_dir} has no counts of its training words, which train.py writes at each start")
    return found
