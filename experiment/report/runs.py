"""The runs of a report: where they lie, how they are told apart, and what is known of each."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import read_json_object
from configs.load import load_run_config
from configs.schema import RunConfig
from experiment.curves import read_curves
from experiment.evaluated_runs import ReportedRun, read_reported
from experiment.sweep.cells import without_outputs
from training.run.layout import CONFIG, DATA, ENVIRONMENT


@dataclass(frozen=True)
class ShownRun:
    """A run, and its report on the set that the page is about; without one, ``missing`` says how to make it."""

    name: str
    folder: Path
    config: RunConfig
    reported: ReportedRun | None
    missing: str

    @cached_property
    def curves(self) -> dict[str, Any]:
        return read_curves(self.folder, self.config.data.batch_rows)

    @cached_property
    def data(self) -> dict[str, Any]:
        return read_json_object(self.folder / DATA)

    @cached_property
    def environment(self) -> dict[str, Any]:
        return read_json_object(self.folder / ENVIRONMENT)


def find_runs(arguments: Sequence[str]) -> list[Path]:
    """The runs of these names, in which a folder stands for all runs in it; UserError if there are none."""
    found: list[Path] = []
    for folder in map(Path, without_outputs(arguments)):
        inside = [] if (folder / CONFIG).exists() else sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
        found += inside or [folder]
    if not found:
        raise UserError(f"{', '.join(arguments)}: name a run, and not what sweeps leave beside theirs")
    return list({folder.resolve(): folder for folder in found}.values())


def short_names(folders: Sequence[Path]) -> list[str]:
    """The fewest last parts of the paths that tell them apart."""
    parts = [Path(os.path.abspath(folder)).parts for folder in folders]
    for count in range(1, max(map(len, parts))):
        names = [os.path.join(*each[-count:]) for each in parts]
        if len(set(names)) == len(names):
            break
    return names


def read_runs(folders: Sequence[Path], set_name: str | None) -> tuple[str, list[ShownRun]]:
    """The set and the runs; without a name, the set is test or, where no run was scored on that, valid.

    UserError for what is no run.
    """
    named = list(zip(folders, short_names(folders), strict=True))
    tested = [read_run(*each, set_name or "test") for each in named]
    if set_name or any(run.reported for run in tested):
        return set_name or "test", tested
    validated = [read_run(*each, "valid") for each in named]
    return "valid", [replace(run, missing=test.missing) for run, test in zip(validated, tested, strict=True)]


def read_run(folder: Path, name: str, set_name: str) -> ShownRun:
    config = load_run_config(folder)
    try:
        return ShownRun(name, folder, config, read_reported(str(folder), set_name, name), "")
    except UserError as error:
        return ShownRun(name, folder, config, None, str(error))
