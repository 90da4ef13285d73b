"""The runs of a report: where they are, what they are called, and what is known about each."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from common.errors import UserError
from common.files import read_json_object
from configs.load import flatten, load_run_config
from configs.schema import RunConfig
from experiment.curves import read_curves
from experiment.evaluated_runs import ReportedRun, read_reported
from experiment.sweep.cells import without_outputs
from model.transformer import structure
from training.run.layout import CONFIG, DATA, ENVIRONMENT, REPORTS


@dataclass(frozen=True)
class ShownRun:
    """A run, and its report on the set that the page shows; without one, ``missing`` says how to make it."""

    name: str
    folder: Path
    config: RunConfig
    data: dict[str, Any]  # its data.json
    reported: ReportedRun | None
    missing: str

    def facts(self) -> dict[str, Any]:
        """The facts that report.js shows; NaN and infinities in a run's files become text, as JSON has neither."""
        reports = {path.stem: read_json_object(path) for path in sorted((self.folder / REPORTS).glob("*.json"))}
        facts = {
            "name": self.name,
            "missing": self.missing,
            "curves": read_curves(self.folder),
            "config": flatten(self.config),
            "parameters": self.count_parameters(),
            "data": self.data,
            "environment": read_json_object(self.folder / ENVIRONMENT),
            "reports": reports,
        }
        return json.loads(json.dumps(facts), parse_constant=str)

    def count_parameters(self) -> int | None:
        """The number of parameters of the model with the vocabulary size that data.json records."""
        tokenizer = self.data.get("tokenizer")
        size = tokenizer.get("vocab_size") if isinstance(tokenizer, dict) else None
        shapes = jax.tree.leaves(structure(self.config.model, size)[1]) if isinstance(size, int) else []
        return sum(leaf.size for leaf in shapes) or None


def find_runs(arguments: Sequence[str]) -> list[Path]:
    """The runs with these names; a folder of runs means all runs in it. UserError if there are none."""
    found: list[Path] = []
    for folder in map(Path, without_outputs(arguments)):
        inside = [] if (folder / CONFIG).exists() else sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
        found += inside or [folder]
    if not found:
        raise UserError(f"{', '.join(arguments)}: name a run, not the files that sweeps leave beside their runs")
    return list({folder.resolve(): folder for folder in found}.values())


def short_names(folders: Sequence[Path]) -> list[str]:
    """The shortest endings of the paths that tell them apart."""
    parts = [Path(os.path.abspath(folder)).parts for folder in folders]
    for count in range(1, max(map(len, parts))):
        names = [os.path.join(*each[-count:]) for each in parts]
        if len(set(names)) == len(names):
            break
    return names


def read_runs(folders: Sequence[Path], set_name: str | None) -> tuple[str, list[ShownRun]]:
    """The set and the runs; without a name, the set is test or, if no run was scored on that, valid.

    UserError if a folder is not a run, or if no run was scored on a named set.
    """
    named = list(zip(folders, short_names(folders), strict=True))
    tested = [read_run(*each, set_name or "test") for each in named]
    if any(run.reported for run in tested):
        return set_name or "test", tested
    if set_name:
        raise UserError(tested[0].missing)
    validated = [read_run(*each, "valid") for each in named]
    return "valid", [replace(run, missing=test.missing) for run, test in zip(validated, tested, strict=True)]


def read_run(folder: Path, name: str, set_name: str) -> ShownRun:
    facts = name, folder, load_run_config(folder), read_json_object(folder / DATA)
    try:
        return ShownRun(*facts, read_reported(str(folder), set_name, name), "")
    except UserError as error:
        return ShownRun(*facts, None, str(error))
