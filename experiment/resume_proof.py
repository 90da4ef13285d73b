"""A training that is killed at random moments and started again, beside one without interruption."""

import json
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from common.errors import UserError
from common.files import sha256_of_file
from common.programs import ROOT, program_environment
from configs.schema import RunConfig
from evaluation.report import translations_beside
from experiment.load_run import load_run
from experiment.reports import place_report
from training.config import TrainingConfig
from training.replay.run_digest import digest_run
from training.run.checkpoint import read_notes
from training.run.corpus import load_tokenizer
from training.run.layout import LOG
from training.run.retention import damaged_steps, good_steps

MOMENTS = "right after the start", "in steps", "writing a checkpoint", "in an evaluation"
START, STEPS, CHECKPOINT, EVALUATION = MOMENTS
SHARES = 1, 1, 3, 1  # of the kills: a save is so short that every other one is missed
Digests = dict[str, str]


@dataclass(frozen=True)
class Proof:
    """An experiment to interrupt: train.py's arguments, its config, the folder of its runs, and randomness."""

    experiment: list[str]
    config: RunConfig
    folder: Path
    kills: int
    processes: int
    chance: random.Random


@dataclass(frozen=True)
class Processes:
    """The processes of a program that train.py or eval.py runs in."""

    each: list[subprocess.Popen[bytes]]

    def poll(self) -> int | None:
        """None while one of them runs, then 0 or the exit code of one that failed."""
        codes = [process.poll() for process in self.each]
        return None if None in codes else max((code or 0 for code in codes), key=abs)

    def wait(self, seconds: float = 1e9, until: Callable[[], bool] = lambda: False) -> int | None:
        """Wait until the time is over, the condition holds, or all have ended; what ``poll`` then returns."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end and not until():
            time.sleep(0.002)
        return self.poll()

    def kill(self, chance: random.Random) -> int | None:
        """Kill them in random order; each but the first may notice, before it is killed, that another is gone."""
        for process in chance.sample(self.each, len(self.each)):
            process.kill()
            self.wait(chance.uniform(0, 0.5))
        return self.wait()


def prove(proof: Proof) -> int:
    """Train without interruption, then with kills, and print how they differ; return the number of differences."""
    longest = train_straight(proof)
    expected = digest(proof, "straight")
    moments: Counter[str] = Counter()
    differences = 0
    for number in count(1):
        name = f"killed-{number}"
        moments += train_killed(proof, name, longest, proof.kills - moments.total())
        differences += print_differences(expected, digest(proof, name), name)
        if moments.total() >= proof.kills:
            break
    counts = ", ".join(f"{moments[moment]} {moment}" for moment in MOMENTS)
    print(f"\n{moments.total()} kills ({counts}): {differences or 'no'} difference{'s' * (differences != 1)}")
    return differences


def train_straight(proof: Proof) -> dict[str, float]:
    """Train without interruption; return how many seconds to wait at most for a kill at each moment."""
    print(f"{proof.folder / 'straight'}: without interruption", flush=True)
    launched = time.monotonic()
    training = start_training(proof, "straight")
    training.wait(until=lambda: size_of(proof.folder / "straight" / LOG) > 0)
    begun = time.monotonic()
    require_success(training, proof, "straight")
    in_steps = 2 * (time.monotonic() - begun) / proof.kills
    return {START: begun - launched, STEPS: in_steps, CHECKPOINT: 0.3, EVALUATION: 2.0}


def train_killed(proof: Proof, name: str, longest: dict[str, float], kills: int) -> Counter[str]:
    """Train to the end with at most ``kills`` kills; count them by moment."""
    run_dir, moments = proof.folder / name, Counter[str]()
    print(f"{run_dir}: killed again and again", flush=True)
    while moments.total() < kills:
        moment = start_and_kill(proof, name, longest)
        if not moment:
            return moments
        moments[moment] += 1
        newest = max(good_steps(run_dir), default=0)
        print(f"  kill {moments.total():>3}  {moment:<22}  newest checkpoint: {newest or 'none'}", flush=True)
        if damaged := damaged_steps(run_dir):
            raise UserError(f"a kill damaged the checkpoints {damaged} of {run_dir}")
    require_success(start_training(proof, name), proof, name)
    return moments


def start_and_kill(proof: Proof, name: str, longest: dict[str, float]) -> str | None:
    """Start a training and kill it; return the moment, or None if it finished before the one chosen."""
    run_dir, (chosen,) = proof.folder / name, proof.chance.choices(MOMENTS, SHARES)
    logged, started = size_of(run_dir / LOG), time.time()

    def moment() -> str:
        return find_moment(proof.config.training, run_dir, logged, started)

    training = start_training(proof, name)
    training.wait(until=lambda: moment() == chosen)
    training.wait(proof.chance.uniform(0, longest[chosen]))
    seen = moment()
    failed = training.kill(proof.chance)
    # Of several processes, one that is killed last may have cleared away what the first was writing.
    return (seen if proof.processes > 1 else moment()) if failed else None


def find_moment(training: TrainingConfig, run_dir: Path, logged: int, started: float) -> str:
    """What a training that was started then, and found ``logged`` bytes in log.txt, is doing, by its files."""
    if size_of(run_dir / LOG) <= logged:
        return START
    if any(is_newer(path, started) for path in run_dir.glob("checkpoints/.[0-9]*")):
        return CHECKPOINT
    return EVALUATION if is_evaluating(training, run_dir) else STEPS


def is_newer(path: Path, moment: float) -> bool:
    """Whether a folder was changed after this moment, unlike one that a killed save left."""
    with suppress(OSError):  # it is being renamed
        return path.stat().st_mtime > moment
    return False


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def is_evaluating(training: TrainingConfig, run_dir: Path) -> bool:
    """Whether an evaluation of the newest checkpoint is due and not done."""
    step = max((int(path.name) for path in run_dir.glob("checkpoints/[0-9]*")), default=0)
    is_due = step and (step % training.eval_every == 0 or step == training.steps)
    with suppress(OSError, ValueError):  # it is being deleted
        return bool(is_due) and read_notes(run_dir, step)["evaluated"] < step
    return False


def start_training(proof: Proof, name: str) -> Processes:
    arguments = ["train.py", *proof.experiment, f"run_dir={proof.folder / name}"]
    if proof.processes == 1:
        return start(proof, name, arguments)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    arguments += [f"mesh.coordinator=localhost:{port}", f"mesh.processes={proof.processes}"]
    return start(proof, name, *([*arguments, f"mesh.process={number}"] for number in range(proof.processes)))


def start(proof: Proof, name: str, *commands: list[str]) -> Processes:
    """Start a process for each command; their output goes to NAME.log."""
    with open(proof.folder / f"{name}.log", "ab") as log:
        programs = ([sys.executable, str(ROOT / program), *arguments] for program, *arguments in commands)
        environment = program_environment()
        return Processes([subprocess.Popen(each, stdout=log, stderr=log, env=environment) for each in programs])


def require_success(processes: Processes, proof: Proof, name: str) -> None:
    if processes.wait():
        raise UserError(f"the training of {proof.folder / name} failed; see {proof.folder / name}.log")


def digest(proof: Proof, name: str) -> Digests:
    """Evaluate a run on its test set, and digest all files that it left."""
    run_dir, config = proof.folder / name, proof.config
    require_success(start(proof, name, ["eval.py", str(run_dir)]), proof, name)
    report = place_report(load_run(run_dir)).find()
    if report is None:
        raise UserError(f"the evaluation of {run_dir} left no report on its test set; see {run_dir}.log")
    scores = json.loads(report.read_text(encoding="utf-8"))
    return digest_run(run_dir, config.model, config.training, load_tokenizer(run_dir).vocab_size) | {
        "test scores": f"BLEU {scores['bleu']!r}, chrF {scores['chrf']!r}",
        "test translations": sha256_of_file(translations_beside(report)),
    }


def print_differences(expected: Digests, found: Digests, name: str) -> int:
    """Print the digests of two runs side by side; return the number of rows that differ."""
    print(f"\n{'':<24}  {'without interruption':<42}  {name}")
    for key, value in expected.items():
        verdict = "equal" if found[key] == value else f"DIFFERS: {found[key][:42]}"
        print(f"{key:<24}  {value[:42]:<42}  {verdict}")
    print(flush=True)
    return sum(expected[key] != found[key] for key in expected)
