"""Prove that killing a training changes nothing: python scripts/prove_resume.py CONFIG --kills N [key=value …].

The experiment is trained once without interruption. Then it is trained again, but killed (SIGKILL) at random moments:
right after the start, in steps, while a checkpoint is written, in an evaluation; and started again with the same
command, until it is done. If it is done before N kills, a further run begins. Everything that a run leaves is compared,
mostly as SHA-256: parameters, optimizer state, averaged parameters, the sequence of batches, every line of metrics but
measured times, the best checkpoint, and the translations and scores of the test set. The exit code is 1 if anything
differs. The runs stay in runs/proof-CONFIG (run_dir=FOLDER chooses another folder).
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from cli.command_line import command_line_with_options
from common.digests import sha256
from common.errors import UserError, exit_on_user_error
from configs.load import load_config
from configs.schema import RunConfig
from data.tokenizer import load_tokenizer
from training.replay.run_digest import outcome
from training.run.checkpoint import damaged_steps, good_steps, notes

ROOT = Path(__file__).parents[1]
START, STEPS, CHECKPOINT, EVALUATION = MOMENTS = (
    "right after the start",
    "in steps",
    "writing a checkpoint",
    "in an evaluation",
)
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Proof:
    """An experiment to interrupt: what train.py is called with, its config, where its runs go, and chance."""

    experiment: list[str]
    config: RunConfig
    folder: Path
    kills: int
    chance: random.Random


@dataclass(frozen=True)
class Pace:
    """How long the uninterrupted run took, in seconds, to draw the moments of the kills from."""

    start: float  # until its first step
    steps: float  # from there to its end


def main() -> None:
    """Entry point."""
    arguments = command_line_with_options(
        __doc__ or "", {"CONFIG": "an experiment, such as configs/quickstart.yaml"}, add_options
    )
    with exit_on_user_error():
        if arguments.kills < 1:
            raise UserError(f"--kills must be at least 1, not {arguments.kills}")
        differing = prove(proof_of(arguments.CONFIG, arguments.overrides, arguments.kills, arguments.seed))
    sys.exit(int(differing > 0))


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, required=True, help="how often to kill the training")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")


def proof_of(path: str, overrides: list[str], kills: int, seed: int) -> Proof:
    """What the command line asks for; UserError if its folder is in use."""
    config = load_config(path, overrides)
    others = [override for override in overrides if not override.startswith("run_dir=")]
    folder = Path(config.run_dir) if others != overrides else Path("runs") / f"proof-{Path(path).stem}"
    if folder.exists():
        raise UserError(f"{folder} is there already: remove it, or set run_dir=NEW_FOLDER")
    folder.mkdir(parents=True)
    return Proof([path, *others], config, folder, kills, random.Random(seed))


def prove(proof: Proof) -> int:
    """Train, kill, compare; the number of differences."""
    pace = train_straight(proof)
    expected = outcome_of(proof, "straight")
    moments: Counter[str] = Counter()
    differing = 0
    for number in count(1):
        moments += train_killed(proof, f"killed-{number}", pace, proof.kills - moments.total())
        differing += compare(expected, outcome_of(proof, f"killed-{number}"), f"killed-{number}")
        if moments.total() >= proof.kills:
            break
    told = ", ".join(f"{moments[moment]} {moment}" for moment in MOMENTS)
    print(f"\n{moments.total()} kills ({told}): {differing or 'no'} difference{'s' * (differing != 1)}")
    return differing


def train_straight(proof: Proof) -> Pace:
    """The run without interruption."""
    print(f"{proof.folder / 'straight'}: without interruption", flush=True)
    launched = time.monotonic()
    process = launch(proof, "straight")
    wait(process, until=lambda: size_of(proof.folder / "straight" / "log.txt") > 0)
    stepping = time.monotonic()
    refuse_failure(process, proof, "straight")
    return Pace(stepping - launched, time.monotonic() - stepping)


def train_killed(proof: Proof, name: str, pace: Pace, kills: int) -> Counter[str]:
    """The run with at most so many kills, to its end; how often it was killed at which moment."""
    print(f"{proof.folder / name}: killed again and again", flush=True)
    run_dir, moments = proof.folder / name, Counter[str]()
    while moments.total() < kills:
        said = size_of(run_dir / "log.txt")
        process = launch(proof, name)
        wait_for_moment(proof.chance.choice(MOMENTS), process, proof, run_dir, said, pace)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            return moments  # it was done before the moment came
        moment = moment_of(proof, run_dir, said)
        moments[moment] += 1
        newest = max(good_steps(run_dir), default=0)
        print(f"  kill {moments.total():>3}  {moment:<22}  newest checkpoint: {newest or 'none'}", flush=True)
        if damaged := damaged_steps(run_dir):
            raise UserError(f"a kill damaged the checkpoints {damaged} of {run_dir}")
    refuse_failure(launch(proof, name), proof, name)
    return moments


def wait_for_moment(moment: str, process: Process, proof: Proof, run_dir: Path, said: int, pace: Pace) -> None:
    """Return at a moment of that kind drawn at random, or when the process ends before it comes."""
    chance = proof.chance
    if moment == START:
        return wait(process, seconds=chance.uniform(0, pace.start))
    wait(process, until=lambda: size_of(run_dir / "log.txt") > said)
    if moment == STEPS:
        return wait(process, seconds=chance.uniform(0, 2 * pace.steps / proof.kills))
    if moment == CHECKPOINT:
        wait(process, until=lambda: is_writing(run_dir))
        return wait(process, seconds=chance.uniform(0, 0.3))
    wait(process, until=lambda: is_evaluating(proof, run_dir))
    return wait(process, seconds=chance.uniform(0, 2))


def moment_of(proof: Proof, run_dir: Path, said: int) -> str:
    """What a killed process was doing, by what it left."""
    if size_of(run_dir / "log.txt") <= said:
        return START
    if is_writing(run_dir):
        return CHECKPOINT
    return EVALUATION if is_evaluating(proof, run_dir) else STEPS


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def is_writing(run_dir: Path) -> bool:
    return any(run_dir.glob("checkpoints/.[0-9]*"))


def is_evaluating(proof: Proof, run_dir: Path) -> bool:
    """Whether the newest checkpoint is one that an evaluation follows, which is not done."""
    step = max((int(path.name) for path in run_dir.glob("checkpoints/[0-9]*")), default=0)
    training = proof.config.training
    if not step or (step % training.eval_every and step != training.steps):
        return False
    try:
        return notes(run_dir, step)["evaluated"] < step
    except (OSError, ValueError):
        return False  # it is being deleted


def wait(process: Process, *, seconds: float = 1e9, until: Callable[[], bool] = lambda: False) -> None:
    """Return after so many seconds, when the condition holds, or when the process ends."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end and not until():
        time.sleep(0.002)


def launch(proof: Proof, name: str) -> Process:
    """train.py on the run ``name``, always by the same command; what it says goes to NAME.log."""
    with open(proof.folder / f"{name}.log", "ab") as log:
        return run_program("train.py", [*proof.experiment, f"run_dir={proof.folder / name}"], log)


def run_program(program: str, arguments: list[str], log: object) -> Process:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(ROOT / program), *arguments]
    return subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": path})  # type: ignore[call-overload]


def refuse_failure(process: Process, proof: Proof, name: str) -> None:
    if process.wait():
        raise UserError(f"the training of {proof.folder / name} failed; {proof.folder / name}.log tells why")


def outcome_of(proof: Proof, name: str) -> dict[str, str]:
    """All that a run left, with its test set evaluated."""
    run_dir, config = proof.folder / name, proof.config
    with open(proof.folder / f"{name}.log", "ab") as log:
        refuse_failure(run_program("eval.py", [str(run_dir)], log), proof, name)
    scores = json.loads((run_dir / "eval" / "test.json").read_text(encoding="utf-8"))
    vocab_size = load_tokenizer(run_dir).vocab_size
    return outcome(run_dir, config.model, config.training, vocab_size) | {
        "test scores": f"BLEU {scores['bleu']!r}, chrF {scores['chrf']!r}",
        "test translations": sha256((run_dir / "eval" / "test.translations.txt").read_bytes()),
    }


def compare(expected: dict[str, str], found: dict[str, str], name: str) -> int:
    """Print both outcomes beside each other; the number of rows that differ."""
    print(f"\n{'':<24}  {'without interruption':<42}  {name}")
    for line in rows(expected, found):
        print(line)
    print(flush=True)
    return sum(expected[key] != found[key] for key in expected)


def rows(expected: dict[str, str], found: dict[str, str]) -> Iterator[str]:
    for key, value in expected.items():
        verdict = "equal" if found[key] == value else f"DIFFERS: {found[key][:42]}"
        yield f"{key:<24}  {value[:42]:<42}  {verdict}"


if __name__ == "__main__":
    main()
