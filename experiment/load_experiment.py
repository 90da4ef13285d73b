"""Load the experiment that a command names. It may be the config of a run that was moved or copied."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from common.errors import UserError
from configs.load import load_config
from configs.schema import RunConfig
from training.run.layout import CONFIG
from training.run.retention import has_checkpoints


def load_experiment(program: str, path: str, overrides: Sequence[str]) -> RunConfig:
    """The config of ``PROGRAM PATH OVERRIDES``.

    UserError for the config of a run that lies elsewhere than its ``run_dir`` says, unless an override sets that: the
    command would start a new run in the old place, or continue the run of which this is a copy.
    """
    config, folder = load_config(path, overrides), Path(path).parent
    is_of_a_run = (folder / CONFIG).is_file() and has_checkpoints(folder)
    lies_there = os.path.exists(config.run_dir) and os.path.samefile(folder, config.run_dir)
    if not is_of_a_run or lies_there or any(each.startswith("run_dir=") for each in overrides):
        return config
    command = shlex.join(["python", program, path, *overrides, f"run_dir={folder}"])
    problem = f"{path} is of a run that was moved or copied: its run_dir is {config.run_dir}"
    raise UserError(f"{problem}. To use the run where it lies: {command}")
