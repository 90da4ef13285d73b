"""Check and measure this project on a GPU: python scripts/check_gpu.py FOLDER [STEP …] [key=value …].

docs/devices.md says what has never run on a GPU. Whoever has one can fill the gap with this. The steps, in this order:

  kernels     attention on the GPU against attention in NumPy, cuDNN's kernel against the definition
  agreement   200 steps with the definition and with cuDNN, compared loss by loss, and a profile of ten steps of each
  resume      kill and resume: with deterministic operations (the same bits), then without (how far apart)
  training    training steps of three models, next to PyTorch's
  attention   attention alone, by length
  quality     configs/tatoeba-base.yaml for eight minutes, and BLEU on its test set
  decoding    the search, next to other programs

Each is a few commands that you can run yourself. They are printed; their output is in FOLDER/STEP.log, their figures in
JSON files beside it, and FOLDER/steps.json says how they ended. If a command fails or takes longer than its limit, the
others still run. Runs lie in FOLDER/runs, which can take gigabytes. key=value goes to every training of tatoeba-base,
such as data.root=PATH. The exit code is 1 if a command failed.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # this clone's rooms, whatever PYTHONPATH has

from cli.command_line import Parser
from common.errors import UserError, exit_on_user_error
from common.files import write_atomically
from common.programs import program_environment
from configs.load import load_config

ROOT = Path(__file__).parents[1]
CONFIG, PROOF = "configs/tatoeba-base.yaml", "configs/quickstart.yaml"
MODELS = {"transformer-big": "128", "transformer-base": "192", "tatoeba-base": "128"}  # and rows of a batch
BFLOAT16 = ["model.dtype=bfloat16", "model.matmul_dtype=bfloat16"]
TINY = ["model.d_model=32", "model.num_heads=2", "model.head_dim=16", "model.d_ff=64", "model.encoder_layers=1"]
TINY += ["model.decoder_layers=1", "tokenizer.vocab_size=400", "data.batch_rows=8"]
FAST = ["decoding.beam_size=1", "decoding.max_length_factor=1", "decoding.batch_sentences=500"]
DETERMINISTIC, TUNED = "--xla_gpu_deterministic_ops=true", "tuned"


@dataclass(frozen=True)
class Command:
    """A program of this project with its arguments, its limit in minutes, and variables of its environment.

    ``compares`` marks one that ends with 1 where two runs differ, as they may.
    """

    minutes: float
    program: str
    arguments: list[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    compares: bool = False

    def __str__(self) -> str:
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return " ".join([*variables, "python", self.program, shlex.join(self.arguments)])


def main() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end what was started, as after Ctrl-C
    with exit_on_user_error():
        arguments = command_line()
        load_config(CONFIG, arguments.changes)  # a mistake in them ends the program now
        platform = find_platform()
        if platform != "gpu" and not arguments.small:
            raise UserError(f"JAX sees no GPU here but a {platform}; --small rehearses every step on this machine")
        steps = list_steps(arguments, gpu=platform == "gpu")
        chosen = choose_steps(arguments.steps or list(steps), steps, arguments.FOLDER)
        (arguments.FOLDER / TUNED).mkdir(parents=True, exist_ok=True)
        describe_gpu(arguments.FOLDER)
        endings = run_steps(chosen, arguments.FOLDER)
    sys.exit(int(not {"failed", "stopped"}.isdisjoint(endings)))


def command_line() -> Namespace:
    parser = Parser(__doc__)
    parser.add_argument("FOLDER", type=Path, help="where logs and figures go")
    parser.add_argument("words", nargs="*", metavar="STEP … key=value …", help="steps to run (all), changes of configs")
    parser.add_argument("--small", action="store_true", help="tiny models, on any device: does everything run?")
    arguments = parser.parse_intermixed_args()
    arguments.FOLDER = arguments.FOLDER.resolve()
    arguments.steps = [word for word in arguments.words if "=" not in word]
    arguments.changes = [word for word in arguments.words if "=" in word]
    return arguments


def choose_steps(names: list[str], steps: Mapping[str, list[Command]], folder: Path) -> dict[str, list[Command]]:
    """Return the steps of these names; UserError for an unknown one, or one that the folder has already."""
    if folder.is_file():
        raise UserError(f"{folder} is a file; name a folder")
    for name in names:
        if name not in steps:
            raise UserError(f"there is no step {name}; choose from {', '.join(steps)}")
        if (folder / f"{name}.log").exists():
            raise UserError(f"{folder} has {name}.log already: choose a new folder, or other steps")
    return {name: steps[name] for name in names}


def find_platform() -> str:
    """Return what JAX computes on, asked in another process: this one would keep memory of the GPU."""
    code = "import jax; print(jax.default_backend())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"JAX does not start: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()


def list_steps(arguments: Namespace, *, gpu: bool) -> dict[str, list[Command]]:
    """Return the commands of every step."""
    folder, small = arguments.FOLDER, arguments.small
    runs, on_gpu = folder / "runs", ["--gpu"] if gpu else []
    kernels = "cudnn,definition" if gpu else "definition,xla"
    experiment = [PROOF, *TINY, *BFLOAT16, *arguments.changes] if small else [CONFIG, *arguments.changes]
    once = ["--rounds=1"] if small else []
    figures = ["--kernels=definition,chunked,cudnn", "--minutes=5", "--json", f"{folder}/attention.json"]
    sizes = ["--sizes", "2,2,16,16"] if small else []
    decoding = ["--json", f"{folder}/decoding.json"]
    little = ["--batch=2", "--sources=3", "--length=3", "--contestants=puente"] if small else []
    limit = "training.steps=24" if small else "training.minutes=8"
    return {
        "kernels": [test_kernels(gpu=gpu, small=small)],
        "agreement": agree(runs, [*experiment, *FAST], kernels.split(","), 35 if small else 200),
        "resume": resume(runs, [PROOF, *(TINY if small else []), *BFLOAT16, *FAST], 50 if small else 1000),
        "training": time_training(folder, [*on_gpu, *once], kernels, small=small),
        "attention": [Command(8, "scripts/benchmark.py", ["attention", *on_gpu, *figures, *sizes, *once])],
        "quality": [
            Command(12, "train.py", [*experiment, limit, f"run_dir={runs}/quality"]),
            Command(3, "eval.py", [f"{runs}/quality", "--output", f"{folder}/eval"]),
        ],
        "decoding": [Command(8, "scripts/benchmark.py", ["decode", *on_gpu, *decoding, *little, *once])],
    }


def test_kernels(*, gpu: bool, small: bool) -> Command:
    tests = ["pytest", "-q", "-n", "2" if small else "8", "-p", "no:cacheprovider", "tests/attention"]
    chosen = ["-k", "cudnn_equals"] if small else []
    return Command(5, "-m", tests + chosen, {"JAX_PLATFORMS": "cuda,cpu"} if gpu else {})


def agree(runs: Path, experiment: list[str], kernels: list[str], steps: int) -> list[Command]:
    changes = [f"training.steps={steps}", "training.profile=[21,30]", "training.log_every=5"]
    commands, pair = [], [f"{runs}/by-{kernel}" for kernel in kernels]
    for kernel, run in zip(kernels, pair, strict=True):
        own = [f"model.kernel={kernel}", f"run_dir={run}"]
        commands.append(Command(4, "train.py", [*experiment, *changes, *own]))
    return [*commands, Command(3, "scripts/replay.py", pair, compares=True)]


def resume(runs: Path, experiment: list[str], steps: int) -> list[Command]:
    changes = [f"training.steps={steps}", f"training.eval_every={steps}", f"training.save_every={steps // 10}"]
    seed = ["--kills", "2", "--seed", "3"]  # which chooses two moments in the steps
    commands = [
        Command(
            6, "scripts/prove_resume.py", [*experiment, *changes, *seed, f"run_dir={runs / name}"], flags, not flags
        )
        for name, flags in {"deterministic": {"XLA_FLAGS": DETERMINISTIC}, "as-it-is": {}}.items()
    ]
    pair = [f"{runs}/as-it-is/straight", f"{runs}/as-it-is/killed-1"]
    return [*commands, Command(3, "scripts/replay.py", pair, compares=True)]


def time_training(folder: Path, options: list[str], kernels: str, *, small: bool) -> list[Command]:
    """What was tuned for one program is kept for the others: times of compiling are not those of a first run."""
    tuned = {"XLA_FLAGS": f"--xla_gpu_per_fusion_autotune_cache_dir={folder / TUNED}"}
    contestants = {"": ["--kernels", kernels], "-torch": ["--sentences=1", "--kernels=auto", "--peer", "torch"]}
    commands = []
    for suffix, more in contestants.items():
        for name, rows in MODELS.items():
            own = [f"configs/{name}.yaml", *(TINY if small else []), "--rows", "8" if small else rows, *more, *options]
            own += ["--no-corpus", "--minutes=3", "--json", f"{folder}/training-{name}{suffix}.json"]
            commands.append(Command(5, "scripts/benchmark.py", ["train", *own], tuned))
    return commands


def describe_gpu(folder: Path) -> None:
    """Keep the output of nvidia-smi, if there is one."""
    if shutil.which("nvidia-smi"):
        done = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False)
        write_atomically(folder / "nvidia-smi.txt", done.stdout)


def run_steps(steps: Mapping[str, list[Command]], folder: Path) -> list[str]:
    """Run every command, whatever becomes of those before it; return how each ended."""
    outcomes: list[dict[str, Any]] = []
    for step, command in [(step, command) for step, commands in steps.items() for command in commands]:
        print(f"{step:<10} {command}", flush=True)
        start, log = time.monotonic(), folder / f"{step}.log"
        ending, seconds = run(command, log), round(time.monotonic() - start, 1)
        outcomes.append({"step": step, "command": str(command), "ending": ending, "seconds": seconds})
        reason = f": {last_line(log)}" if ending == "failed" else ""
        print(f"{'':<10} {ending} after {seconds:.0f} s{reason}", flush=True)
        write_atomically(folder / "steps.json", json.dumps(outcomes, indent=1) + "\n")
    return [outcome["ending"] for outcome in outcomes]


def last_line(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]


def run(command: Command, log: Path) -> str:
    """Run a command in the clone, with its output at the end of the log.

    Returns how it ended: done, with differences found, failed, or stopped because its time was up.
    """
    environment = program_environment() | {"PYTHONUNBUFFERED": "1"} | dict(command.variables)
    line = [sys.executable, command.program, *command.arguments]
    with open(log, "a", encoding="utf-8") as output:
        print(f"\n$ {command}", file=output, flush=True)
        with Popen(line, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True) as process:
            try:
                code = process.wait(60 * command.minutes)
            except subprocess.TimeoutExpired:
                return "stopped"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # the processes that it started, too
    return "done" if code == 0 else "differs" if code == 1 and command.compares else "failed"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted: choose a new folder to begin again, or the steps that are missing")
