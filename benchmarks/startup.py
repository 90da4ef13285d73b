"""How long train.py takes from the command to the end of its first step."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from common.errors import UserError
from common.text_table import Table
from training.run.layout import METRICS


def measure_start(command: list[str], folder: Path) -> dict[str, float]:
    """Start train.py three times by ``command``; return seconds by what the user's cache folder held before.

    The cache folder is empty at first; then it holds the corpus and the vocabulary of the first start,
    and at last the compiled programs as well. Every start has a new run directory in ``folder``. UserError if train.py
    ends without a step.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    seconds = {}
    for number, before in enumerate(("nothing", "data", "data and programs")):
        if before == "data":
            for programs in (folder / "cache" / "puente").glob("compiled-*"):
                shutil.rmtree(programs)
        seconds[before] = time_first_step(command, folder / f"start-{number}", environment)
    return seconds


def time_first_step(command: list[str], run_dir: Path, environment: dict[str, str]) -> float:
    """Return the seconds until the first step has its line of metrics, and end the process."""
    log, metrics = run_dir.with_suffix(".stderr"), run_dir / METRICS
    command = [*command, f"run_dir={run_dir}", "training.log_every=1"]
    start = time.perf_counter()
    with log.open("wb") as stderr, subprocess.Popen(command, env=environment, stdout=stderr, stderr=stderr) as process:
        try:
            while not (metrics.exists() and b"\n" in metrics.read_bytes()):
                if process.poll() is not None:
                    last_line = log.read_text(encoding="utf-8", errors="replace").rstrip().rpartition("\n")[2]
                    raise UserError(f"--start: train.py ended before its first step: {last_line}")
                time.sleep(0.01)
            return time.perf_counter() - start
        finally:
            process.kill()


def start_table(seconds: dict[str, float]) -> Table:
    """Return a table with a row for each start."""
    note = "From the command to the end of the first step of train.py, in a new run directory."
    rows = [[before, f"{value:.1f}"] for before, value in seconds.items()]
    return Table("Start", note, ["kept from before", "seconds"], rows)
