"""Prove that killing a training changes nothing: python scripts/prove_resume.py CONFIG --kills N [key=value …].

The experiment is trained once without interruption. Then it is trained again, but killed (SIGKILL) at random moments
(right after the start, in steps, while a checkpoint is written, in an evaluation) and restarted with the same command
until it is done; if it is done before N kills, another run begins. Everything that a run leaves is compared, mostly as
SHA-256: parameters, optimizer state, averaged parameters, the sequence of batches, every line of metrics except
measured times, the best checkpoint, and the translations and scores of the test set. The exit code is 1 if anything
differs. The runs stay in runs/proof-CONFIG (run_dir=FOLDER chooses another folder).
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from cli.command_line import parse_command_line
from cli.process import program_environment
from cli.reports import find_own_report
from common.errors import UserError, exit_on_user_error
from common.files import sha256_of_file
from configs.load import load_config
from configs.schema import RunConfig
from data.tokenizer import load_tokenizer
from evaluation.conditions import translations_beside
from training.config import TrainingConfig
from training.replay.run_digest import digest_run
from training.run.catalog import damaged_steps, good_steps
from training.run.checkpoint import read_notes

ROOT = Path(__file__).parents[1]
MOMENTS = "right after the start", "in steps", "writing a checkpoint", "in an evaluation"
START, STEPS, CHECKPOINT, EVALUATION = MOMENTS
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Proof:
    """An experiment to interrupt: train.py's arguments, its config, the folder of its runs, and randomness."""

    experiment: list[str]
    config: RunConfig
    folder: Path
    kills: int
    chance: random.Random


def main() -> None:
    positionals = {"CONFIG": "a config file, such as configs/quickstart.yaml"}
    arguments = parse_command_line(__doc__, positionals, add_options)
    with exit_on_user_error():
        if arguments.kills < 1:
            raise UserError(f"--kills must be at least 1, not {arguments.kills}")
        differences = prove(plan_proof(arguments.CONFIG, arguments.overrides, arguments.kills, arguments.seed))
    sys.exit(int(differences > 0))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, required=True, help="how often to kill the training")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")


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
    process = start_training(proof, "straight")
    wait(process, until=lambda: size_of(proof.folder / "straight" / "log.txt") > 0)
    start = time.monotonic() - launched
    steps = 2 * measure_steps(process, proof, proof.folder / "straight") / proof.kills
    require_success(process, proof, "straight")
    return {START: start, STEPS: steps, CHECKPOINT: 0.3, EVALUATION: 2.0}


def measure_steps(process: Process, proof: Proof, run_dir: Path) -> float:
    """Return the seconds that a training spends in steps until it ends, without checkpoints and evaluations."""
    total, before = 0.0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.002)
        now = time.monotonic()
        total += (now - before) * (find_moment(proof, run_dir, 0) == STEPS)
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
    run_dir, chosen = proof.folder / name, proof.chance.choice(MOMENTS)
    logged = size_of(run_dir / "log.txt")
    process = start_training(proof, name)
    wait(process, until=lambda: find_moment(proof, run_dir, logged) == chosen)
    wait(process, seconds=proof.chance.uniform(0, longest[chosen]))
    process.kill()
    return find_moment(proof, run_dir, logged) if process.wait() else None


def find_moment(proof: Proof, run_dir: Path, logged: int) -> str:
    """What a process that found ``logged`` bytes in log.txt is doing, by its files."""
    if size_of(run_dir / "log.txt") <= logged:
        return START
    if any(run_dir.glob("checkpoints/.[0-9]*")):
        return CHECKPOINT
    return EVALUATION if is_evaluating(proof.config.training, run_dir) else STEPS


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def is_evaluating(training: TrainingConfig, run_dir: Path) -> bool:
    """Whether an evaluation of the newest checkpoint is due and not done."""
    step = max((int(path.name) for path in run_dir.glob("checkpoints/[0-9]*")), default=0)
    is_due = step and (step % training.eval_every == 0 or step == training.steps)
    with suppress(OSError, ValueError):  # it is being deleted
        return bool(is_due) and read_notes(run_dir, step)["evaluated"] < step
    return False


def wait(process: Process, *, seconds: float = 1e9, until: Callable[[], bool] = lambda: False) -> None:
    """Wait until the time is over, the condition holds, or the process ends."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end and not until():
        time.sleep(0.002)


def start_training(proof: Proof, name: str) -> Process:
    return start_program(proof, name, "train.py", *proof.experiment, f"run_dir={proof.folder / name}")


def start_program(proof: Proof, name: str, program: str, *arguments: str) -> Process:
    """Start a program whose output goes to NAME.log."""
    command = [sys.executable, str(ROOT / program), *arguments]
    with open(proof.folder / f"{name}.log", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=program_environment())


def require_success(process: Process, proof: Proof, name: str) -> None:
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
