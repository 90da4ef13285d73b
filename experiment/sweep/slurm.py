"""A SLURM array job with a task for each cell of a sweep."""

import shlex
from pathlib import Path

from common.programs import ROOT
from experiment.sweep.cells import Sweep

SCRIPT = """#!/usr/bin/env bash
# Made by scripts/sweep.py --slurm: each task trains one cell. Submit with: sbatch {path}
# A task that is asked to stop saves and is queued again; a task of a complete cell ends at once.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --output={folder}/slurm-%A-%a.txt
#SBATCH --time=04:00:00
#SBATCH --gpus=1
#SBATCH --requeue
#SBATCH --signal=B:TERM@120
cd {here} || exit 2
{python} {program} {sweep} --set {set_name} --cell "$SLURM_ARRAY_TASK_ID" &
trap 'stopped=1; kill -TERM "$!"' TERM
wait "$!"
code=$?
if [ -n "${{stopped:-}}" ]; then wait "$!"; code=$?; fi
if [ "$code" -ge 128 ]; then scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"; fi
exit "$code"
"""


def array_script(sweep: Sweep, file: Path, set_name: str, python: str, here: Path, path: Path) -> str:
    """The script, which runs from the folder ``here``; time and GPUs of a task are the reader's to change."""
    words = {"here": str(here), "python": python, "program": str(ROOT / "scripts/sweep.py"), "sweep": str(file)}
    quoted = {name: shlex.quote(word) for name, word in words.items()}
    return SCRIPT.format(
        path=path, name=sweep.folder.name, last=len(sweep.cells) - 1, folder=sweep.folder, set_name=set_name, **quoted
    )
