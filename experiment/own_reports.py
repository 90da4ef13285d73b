"""The reports of a run's scores: what one belongs to, by the run's config and data, and where to find it."""

from dataclasses import replace
from pathlib import Path

from common.option import select
from configs.load import load_run_config
from configs.schema import RunConfig
from data.corpus.report import load_identity
from data.sources.corpus import load_held_out
from evaluation.conditions import Conditions, Precision, find_report, name_of_source


def conditions_of(config: RunConfig, test_set_sha256: str, run: str = "") -> Conditions:
    """The conditions of a score on a set with this config; ``run`` as in Conditions."""
    data = config.data
    precision = Precision(config.model.dtype, config.model.matmul_dtype)
    direction = f"{data.source}-{data.target}" if len(data.directions) > 1 else ""
    return Conditions(test_set_sha256, select(data, "of_file"), precision, config.decoding, run, direction)


def own_conditions(run_dir: Path, run: str = "") -> Conditions:
    """Those of the run's own score: the test set recorded in ``data.json``, and nothing changed in the config."""
    identity = load_identity(run_dir)
    return conditions_of(load_run_config(run_dir), "".join(identity.files["test"]) if identity else "", run)


def find_own_report(run_dir: Path) -> Path | None:
    """The report on the run's own test set, searched as its config says."""
    return find_report(run_dir / "eval", "test", own_conditions(run_dir), own=True)


def find_report_of(config: RunConfig, run_dir: Path) -> Path | None:
    """The report on the run's own test set, of this direction, checkpoint and search, in the run's precision."""
    own = own_conditions(run_dir)
    conditions = replace(conditions_of(config, own.test_set_sha256), precision=own.precision)
    name = "test" if conditions.direction == own.direction else f"test.{conditions.direction}"
    is_own = conditions == replace(own, direction=conditions.direction)
    return find_report(run_dir / "eval", name, conditions, own=is_own)


def find_report_on(run_dir: Path, source: str) -> Path | None:
    """The report on another set, a value of ``data.test``, searched as the run's config says."""
    config = load_run_config(run_dir, [f"data.test={source}"])
    conditions = conditions_of(config, load_held_out(config.data, "test", run_dir)[1].sha256)
    return find_report(run_dir / "eval", name_of_source(source), conditions, own=False)
