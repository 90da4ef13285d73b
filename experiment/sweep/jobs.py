"""Train the cells of a sweep, several at a time. A cell that is stopped at any point continues at the next start."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from common.files import explain_write_errors
from common.programs import ROOT, program_environment
from common.signals import SIGNALS, handle_signals
from experiment.sweep import states
from experiment.sweep.cells import Cell, Sweep
from experiment.sweep.states import State, read_state, with_metrics

POLL = 0.2  # seconds
# Starts a cell's process, which then becomes the program: running Python after a fork, in a process with threads, may
# hang. 1 is Linux's PR_SET_PDEATHSIG: the signal sent when the parent ends.
PREPARE = """
import ctypes, os, signal, sys
if sys.argv[1]:
    os.sched_setaffinity(0, map(int, sys.argv[1].split(",")))
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
os.execvp(sys.argv[2], sys.argv[2:])
"""
SAVED = tuple(128 + number for number in SIGNALS)  # exit codes of training runs that were stopped from outside


@dataclass(frozen=True)
class Share:
    """The cores that a job may use (empty: all), and environment variables that select its GPU."""

    cores: frozenset[int] = frozenset()
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Job:
    """A program that works on a cell, in its share of the machine."""

    cell: Cell
    share: Share
    word: str
    process: subprocess.Popen[bytes]
    signals: int = 0  # how many it was sent


@dataclass
class Jobs:
    """The jobs of a sweep, and the states of its cells. ``report`` is called whenever a cell's state changes."""

    sweep: Sweep
    set_name: str
    free: list[Share]
    states: dict[str, State]
    report: Callable[[Cell, State], object]
    waiting: deque[Cell] = field(default_factory=deque)
    running: list[Job] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)  # the last line of a failed cell's output
    signals: list[int] = field(default_factory=list)  # received so far

    def run(self, cells: Sequence[Cell]) -> None:
        """Work on all cells; after a signal, which is passed on to every job, only wait for running jobs."""
        self.waiting.extend(cells)
        with handle_signals(lambda number, frame: self.signals.append(number)):
            while self.running or (self.waiting and not self.signals):
                for cell in [self.waiting.popleft() for _ in cells[: len(self.waiting)]]:
                    if not self.free or self.signals or not self.take(cell):
                        self.waiting.append(cell)
                time.sleep(POLL)
                self.pass_signals_on()
                for job in [job for job in self.running if job.process.poll() is not None]:
                    self.end(job)

    def pass_signals_on(self) -> None:
        """Pass signals on to jobs. Training saves and ends at the first signal; a second one kills it."""
        for job in self.running:
            for number in self.signals[job.signals :]:
                job.process.send_signal(number)
            job.signals = len(self.signals)

    def take(self, cell: Cell) -> bool:
        """Start a cell's next program, if there is one. False if another process is working on the cell."""
        state = read_state(cell, self.set_name)
        if state.word in (states.ELSEWHERE, states.COMPLETE):
            if self.states[cell.name].word != state.word:
                self.change(cell, state)
            return state.word == states.COMPLETE  # by that process
        self.start(cell, self.free.pop(0), states.EVALUATING if state.word == states.TRAINED else states.TRAINING)
        return True

    def start(self, cell: Cell, share: Share, word: str) -> None:
        command = [sys.executable, str(ROOT / "train.py"), str(self.sweep.base), *cell.overrides]
        if word == states.EVALUATING:
            command = [sys.executable, str(ROOT / "eval.py"), str(cell.run_dir)]
        with explain_write_errors(cell.output), open(cell.output, "ab") as file:
            process = launch(command, share, file)
        self.running.append(Job(cell, share, word, process))
        self.change(cell, with_metrics(cell, word))

    def end(self, job: Job) -> None:
        """Handle the end of a job: start the cell's next program, or record how the cell ended."""
        self.running.remove(job)
        code, state = job.process.returncode, read_state(job.cell, self.set_name)
        if code == 0 and state.word == states.TRAINED and job.word == states.TRAINING and not self.signals:
            self.start(job.cell, job.share, states.EVALUATING)
            return
        self.free.append(job.share)
        if state.word == states.ELSEWHERE:  # another sweep of the same file was first
            self.waiting.append(job.cell)
        elif code not in (0, *SAVED) and not (code < 0 and self.signals):
            killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
            self.failures[job.cell.name] = killed or last_line(job.cell.output)
            state = replace(state, word=states.FAILED)
        self.change(job.cell, state)

    def change(self, cell: Cell, state: State) -> None:
        self.states[cell.name] = state
        self.report(cell, state)


def launch(command: list[str], share: Share, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a program in its own session, so that Ctrl-C reaches it only once; it ends when this process does."""
    program = [sys.executable, "-c", PREPARE, ",".join(map(str, share.cores)), *command]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
    environment = program_environment() | share.environment
    return subprocess.Popen(program, **streams, env=environment, start_new_session=True)


def last_line(output: Path) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def shares(jobs: int | None) -> list[Share]:
    """A share for each job; None means one job per GPU, or one job on a CPU.

    More jobs than GPUs share them, which JAX's memory use rarely allows. Cores are split as evenly as possible.
    """
    gpus = [] if os.environ.get("JAX_PLATFORMS") == "cpu" else list_gpus()
    count = jobs or len(gpus) or 1
    if gpus:
        return [Share(environment={"CUDA_VISIBLE_DEVICES": gpus[index % len(gpus)]}) for index in range(count)]
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if count == 1 or count > len(cores):
        return [Share()] * count
    return [Share(frozenset(cores[index::count])) for index in range(count)]


def list_gpus() -> list[str]:
    """The NVIDIA GPUs that JAX would see, found without starting JAX, which would hold on to their memory."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [gpu for gpu in visible.split(",") if gpu.strip() and gpu != "-1"]
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, _ in enumerate(line for line in listed.splitlines() if line.startswith("GPU "))]
