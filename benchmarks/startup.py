"""How long train.py takes from the command to the end of its first step."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from common.errors import UserError
from common.text_table import Table

Seconds = dict[str, float]  # by what the user's cache folder held before


def seconds_to_first_step(command: list[str], folder: Path) -> Seconds:
    """``command`` starts train.py on an experiment; three times, each in a new run directory within ``folder``.

    The first time with an empty cache folder, then with the vocabulary (and the phrasebook, if it is used) that this
    left there, at last with the compiled programs as well. UserError if it ends without a step.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    seconds = {"nothing": until_first_step(command, folder / "first", environment)}
    for programs in (folder / "cache" / "puente").glob("compiled-*"):
        shutil.rmtree(programs)
    seconds["data"] = until_first_step(command, folder / "second", environment)
    seconds["data and programs"] = until_first_step(command, folder / "third", environment)
    return seconds


def until_first_step(command: list[str], run_dir: Path, environment: dict[str, str]) -> float:
    """Seconds until the metrics have a line, of the first step; then the process is ended."""
    told = run_dir.with_suffix(".stderr")
    start = time.perf_counter()
    with told.open("wb") as stderr:
        options = [f"run_dir={run_dir}", "training.log_every=1"]
        process = subprocess.Popen([*command, *options], env=environment, stdout=stderr, stderr=stderr)
        try:
            while not has_line(run_dir / "metrics.jsonl"):
                if process.poll() is not None:
                    raise UserError(f"--start: train.py ended before its first step: {last_line(told)}")
                time.sleep(0.01)
            return time.perf_counter() - start
        finally:
            process.kill()
            process.wait()


def has_line(path: Path) -> bool:
    return path.exists() and b"\n" in path.read_bytes()


def last_line(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").rstrip().rpartition("\n")[2]


def start_table(seconds: Seconds) -> Table:
    """The starts, one a row."""
    note = "From the command to the end of the first step of train.py, in a new run directory."
    rows = [[before, f"{value:.1f}"] for before, value in seconds.items()]
    return Table("Start", note, ["kept from before", "seconds"], rows)
