"""The reports of a run's scores: which one is the run's own, and where the others are."""

from dataclasses import replace
from pathlib import Path

from common.files import explain_write_errors, read_json_object
from common.option import select
from configs.schema import RunConfig
from evaluation.report import Precision, ReportKey, ReportPlace, name_of_source
from experiment.load_run import LoadedRun, load_run
from training.run.corpus import load_identity
from training.run.layout import DATA, REPORTS, report_path
from training.run.retention import recorded_checkpoint


def report_key(config: RunConfig, test_set_sha256: str, run: str = "") -> ReportKey:
    """The key that identifies a score on a set with this config; ``run`` as in ReportKey."""
    data = config.data
    precision = Precision(config.model.dtype, config.model.matmul_dtype)
    direction = f"{data.source}-{data.target}" if len(data.directions) > 1 else ""
    return ReportKey(test_set_sha256, select(data, "of_file"), precision, config.decoding, run, direction)


def recorded_test_set(run: LoadedRun) -> str:
    """The SHA-256 of the test set recorded in data.json, or an empty string."""
    identity = load_identity(run.folder / DATA)
    return "".join(identity.files["test"]) if identity else ""


def place_report(run: LoadedRun, test_set_sha256: str | None = None, folder: Path | None = None) -> ReportPlace:
    """Where to put the score of a run with its config, on its own test set unless another one is given.

    It is the run's own score if nothing in the config but the direction was changed.
    """
    usual, recorded = run.folder / REPORTS, recorded_test_set(run)
    outside = "" if folder is None or folder.resolve() == usual.resolve() else str(run.folder.resolve())
    own = report_key(run.saved, recorded, outside)
    key = report_key(run.config, recorded if test_set_sha256 is None else test_set_sha256, outside)
    is_own_set = key.test_set_sha256 == recorded or not run.config.data.test
    name = "test" if is_own_set else name_of_source(run.config.data.test)
    if key.direction != own.direction:
        name, own = f"{name}.{key.direction}", replace(own, direction=key.direction)
    return ReportPlace(folder or usual, name, key, key == own, recorded_checkpoint(run.folder, key.decoding.checkpoint))


def own_report(run_dir: Path, set_name: str) -> Path:
    """The path of a run's own score on its test set, or on another set such as valid."""
    found = place_report(load_run(run_dir)).find() if set_name == "test" else None
    return found or report_path(run_dir, set_name)


def find_mismatch(run_dir: Path, path: Path, which: str, set_name: str = "") -> str:
    """Why a report does not match the run's current checkpoint ``which``; empty if it does.

    With ``set_name``, the report must be on that set of the run. What is not recorded is not compared.
    """
    report, identity = read_json_object(path), load_identity(run_dir / DATA)
    scored, checkpoint = str(report.get("test_set_sha256")), recorded_checkpoint(run_dir, which)
    if identity and scored not in identity.files.get(set_name, [scored]):
        return f"scores another set than the {set_name} set of {run_dir}"
    by_training = path.name.startswith("valid.")  # the last evaluation's
    if by_training or checkpoint is None or checkpoint.is_scored_by(report):
        return ""
    steps = f"step {report.get('step')}, and decoding.checkpoint={which} of {run_dir} is now step {checkpoint.step}"
    return f"is of another model: it scores {steps}"


def set_reports_aside(run_dir: Path, step: int, names: str) -> Path | None:
    """Move reports with these names to eval/until-STEP, after which the run changed; None if there are none."""
    folder = run_dir / REPORTS
    found = sorted(path for path in folder.glob(names) if path.is_file() and not path.name.startswith("."))
    aside = folder / f"until-{step}"
    with explain_write_errors(aside):
        for path in found:  # SET.json before SET.jsonl: a report never refers to a missing file
            aside.mkdir(exist_ok=True)
            path.replace(aside / path.name)
    return aside if found else None
