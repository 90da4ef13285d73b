"""Every script finds the rooms of its own clone, whatever PYTHONPATH has before them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = [ROOT / "train.py", ROOT / "eval.py", *sorted((ROOT / "scripts").glob("*.py"))]
FAST = "average_checkpoints"


@pytest.mark.parametrize(
    "program", [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem != FAST)) for path in PROGRAMS]
)
def test_modules_of_another_project_are_not_taken_for_rooms(program, tmp_path):
    for room in ("attention", "cli", "common", "configs", "data", "evaluation", "experiment", "model", "training"):
        (tmp_path / f"{room}.py").write_text("raise SystemExit('of another project')")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(program), "--help"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "usage:" in done.stdout
