"""How long train.py takes from the command to the end of its first step."""

import os
import subprocess
import time
from pathlib import Path

from data.card_text import Table
from data.errors import UserError

Seconds = dict[str, float]  # by what the compilation cache held before


def seconds_to_first_step(command: list[str], folder: Path) -> Seconds:
    """``command`` starts train.py on an experiment; twice, each time in a new run directory within ``folder``.

    What it compiles the first time lies in JAX's cache the second time. UserError if it ends without a step.
    """
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache")}
    return {before: until_first_step(command, folder / before, environment) for before in ("empty", "filled")}


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
    """Both starts."""
    note = "From the command to the end of the first step of train.py, in a new run directory: tokenizer included."
    rows = [[before, f"{value:.1f}"] for before, value in seconds.items()]
    return Table("Start", note, ["compilation cache", "seconds"], rows)
