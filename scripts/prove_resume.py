"""Prove that killing a training changes nothing: python scripts/prove_resume.py CONFIG --kills N [key=value …].

The experiment is trained once without interruption. Then it is trained again, but killed (SIGKILL) at random moments
(right after the start, in steps, while a checkpoint is written beside them, in an evaluation) and restarted with the
same command until it is done; if it is done before N kills, another run begins. With --processes, several processes
train each run, and are killed one after the other, in random order. Everything that a run leaves is compared, mostly as
SHA-256: parameters, optimizer state, averaged parameters, the sequence of batches, every line of metrics except
measured times, the best checkpoint, and the translations and scores of the test set. The exit code is 1 if anything
differs. The runs stay in runs/proof-CONFIG (run_dir=FOLDER chooses another folder).
"""

import argparse
import json
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from cli.command_line import parse_command_line
from common.errors import UserError, exit_on_user_error
from common.files import sha256_of_file
from common.programs import program_environment
from configs.load import load_config
from configs.schema import RunConfig
from data.tokens.tokenizer import load_tokenizer
from evaluation.conditions import translations_beside
from experiment.own_reports import find_own_report
from training.config import TrainingConfig
from training.replay.run_digest import digest_run
from training.run.checkpoint import read_notes
from training.run.checkpoints import damaged_steps, good_steps

ROOT = Path(__file__).parents[1]
MOMENTS = "right after the start", "in steps", "writing a checkpoint", "in an evaluation"
START, STEPS, CHECKPOINT, EVALUATION = MOMENTS
SHARES = 1, 1, 3, 1  # of the kills: a save is so short that every other one is missed
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Proof:
    """An experiment to interrupt: train.py's arguments, its config, the folder of its runs, and randomness."""

    experiment: list[str]
    config: RunConfig
    folder: Path
    kills: int
    chance: random.Random
    processes: int = 1


@dataclass(frozen=True)
class Training:
    """The processes of a training."""

    processes: list[Process]

    def poll(self) -> int | None:
        """None while one of them runs, then 0 or the exit code of one that failed."""
        codes = [process.poll() for process in self.processes]
        return None if None in codes else self.wait()

    def wait(self) -> int:
        return max((process.wait() for process in self.processes), key=abs)

    def kill(self, chance: random.Random) -> None:
        """Kill them in random order; each but the first learns that another is gone before it is killed, or not."""
        for process in chance.sample(self.processes, len(self.processes)):
            process.kill()
            wait(self, seconds=chance.uniform(0, 0.5))


def main() -> None:
    positionals = {"CONFIG": "a config file, such as configs/quickstart.yaml"}
    arguments = parse_command_line(__doc__, positionals, add_options)
    with exit_on_user_error():
        for option, number in (("--kills", arguments.kills), ("--processes", arguments.processes)):
            if number < 1:
                raise UserError(f"{option} must be at least 1, not {number}")
        proof = plan_proof(arguments.CONFIG, arguments.overrides, arguments.kills, arguments.seed)
        differences = prove(replace(proof, processes=arguments.processes))
    sys.exit(int(differences > 0))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, required=True, help="how often to kill the training")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")
    parser.add_argument("--processes", type=int, default=1, help="how many processes train each run (default: 1)")


def plan_proof(path: str, overrides: list[str], kills: int, seed: int) -> Proof:
    """The proof that the command line describes, with its folder created; UserError if the folder exists."""
    config = load_config(path, overrides)
    others = [override for override in overrides if not override.startswith("run_dir=")]
    folder = Path(config.run_dir) if others != overrides else Path("runs") / f"proof-{Path(path).stem}"
    if folder.exists():
        raise UserError(f"{folder} is there already: remove it, or set run_dir=NEW_FOLDER")
    folder.mkdir(parents=True)
    return Proof([path, *others], config, folder, kills, random.Random(seed))


def prove(proof: Proof) -> int:
    """Return the number of differences."""
    longest = train_straight(proof)
    expected = digest(proof, "straight")
    moments: Counter[str] = Counter()
    differences = 0
    for number in count(1):
        moments += train_killed(proof, f"killed-{number}", longest, proof.kills - moments.total())
        differences += compare(expected, digest(proof, f"killed-{number}"), f"killed-{number}")
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
    wait(training, until=lambda: size_of(proof.folder / "straight" / "log.txt") > 0)
    start = time.monotonic() - launched
    steps = 2 * measure_steps(training, proof, proof.folder / "straight") / proof.kills
    require_success(training, proof, "straight")
    return {START: start, STEPS: steps, CHECKPOINT: 0.3, EVALUATION: 2.0}


def measure_steps(training: Training, proof: Proof, run_dir: Path) -> float:
    """Return the seconds that a training spends in steps until it ends, without checkpoints and evaluations."""
    total, before = 0.0, time.monotonic()
    while training.poll() is None:
        time.sleep(0.002)
        now = time.monotonic()
        total += (now - before) * (find_moment(proof, run_dir, 0, 0) == STEPS)
        before = now
    return total


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
    logged, started = size_of(run_dir / "log.txt"), time.time()

    def moment() -> str:
        return find_moment(proof, run_dir, logged, started)

    training = start_training(proof, name)
    wait(training, until=lambda: moment() == chosen)
    wait(training, seconds=proof.chance.uniform(0, longest[chosen]))
    seen = moment()
    training.kill(proof.chance)
    failed = training.wait()
    # Of several processes, one that is killed last may have cleared away what the first was writing.
    return (seen if proof.processes > 1 else moment()) if failed else None


def find_moment(proof: Proof, run_dir: Path, logged: int, started: float) -> str:
    """What a training that was started then, and found ``logged`` bytes in log.txt, is doing, by its files."""
    if size_of(run_dir / "log.txt") <= logged:
        return START
    if any(is_newer(path, started) for path in run_dir.glob("checkpoints/.[0-9]*")):
        return CHECKPOINT
    return EVALUATION if is_evaluating(proof.config.training, run_dir) else STEPS


def is_newer(path: Path, moment: float) -> bool:
    """Whether a folder was changed after this moment: what a killed save left was not."""
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


def wait(training: Training, *, seconds: float = 1e9, until: Callable[[], bool] = lambda: False) -> None:
    """Wait until the time is over, the condition holds, or the training ends."""
    end = time.monotonic() + seconds
    while training.poll() is None and time.monotonic() < end and not until():
        time.sleep(0.002)


def start_training(proof: Proof, name: str) -> Training:
    """Start all processes of a training."""
    arguments = [*proof.experiment, f"run_dir={proof.folder / name}"]
    if proof.processes == 1:
        return Training([start_program(proof, name, "train.py", *arguments)])
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    arguments += [f"mesh.coordinator=localhost:{port}", f"mesh.processes={proof.processes}"]
    numbers = range(proof.processes)
    return Training([start_program(proof, name, "train.py", *arguments, f"mesh.process={i}") for i in numbers])


def start_program(proof: Proof, name: str, program: str, *arguments: str) -> Process:
    """Start a program whose output goes to NAME.log."""
    command = [sys.executable, str(ROOT / program), *arguments]
    with open(proof.folder / f"{name}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=program_environment())


def require_success(process: Training | Process, proof: Proof, name: str) -> None:
    if process.wait():
        raise UserError(f"the training of {proof.folder / name} failed; see {proof.folder / name}.log")


def digest(proof: Proof, name: str) -> dict[str, str]:
    """Evaluate a run on its test set, and digest everything that it left."""
    run_dir, config = proof.folder / name, proof.config
    require_success(start_program(proof, name, "eval.py", str(run_dir)), proof, name)
    report = find_own_report(run_dir)
    if report is None:
        raise UserError(f"the evaluation of {run_dir} left no report on its test set; see {proof.folder / name}.log")
    scores = json.loads(report.read_text(encoding="utf-8"))
    return digest_run(run_dir, config.model, config.training, load_tokenizer(run_dir).vocab_size) | {
        "test scores": f"BLEU {scores['bleu']!r}, chrF {scores['chrf']!r}",
        "test translations": sha256_of_file(translations_beside(report)),
    }


def compare(expected: dict[str, str], found: dict[str, str], name: str) -> int:
    """Print the digests of two runs side by side; return the number of rows that differ."""
    print(f"\n{'':<24}  {'without interruption':<42}  {name}")
    for key, value in expected.items():
        verdict = "equal" if found[key] == value else f"DIFFERS: {found[key][:42]}"
        print(f"{key:<24}  {value[:42]:<42}  {verdict}")
    print(flush=True)
    return sum(expected[key] != found[key] for key in expected)


if __name__ == "__main__":
    main()
