"""Faults that are drawn by seed and number, committed in programs that then go on, beside undisturbed ones.

A fault is a function of seed and number: what it strikes, its kind, and its place among the lines that the undisturbed
program left (tests/faults/inside/sitecustomize.py).
"""

import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from common.errors import UserError
from common.files import files_below
from common.programs import ROOT, program_environment
from configs.schema import RunConfig
from tests.faults.scenarios import BEGINS_WITH, SCENARIOS, digest
from training.run.retention import damaged_steps

SIGNALS = "SIGKILL", "SIGTERM twice", "flipped bit"  # the bit after a kill
KINDS = *SIGNALS, "ENOSPC", "EIO", "torn write", "clock", "lost lock", "slow disk"
CHANGES = "write", "mkdir", "rename", "remove", "rmdir"  # what most kinds strike
STRUCK = {"ENOSPC": ("write", "mkdir"), "torn write": ("write",), "EIO": ("read", *CHANGES)}
UNREAD = re.compile(r"/(log|metrics)\.|\.txt$|events|/eval/|/\.|process.json")  # by programs that go on
# What lines of one sort differ in: numbers, the files of Orbax, names before a rename, what is removed with its folder.
ALIKE = re.compile(r"\d+|\w+\.orbax.*|\.[^/]+\.tmp$|(?<=remove )[^/]+$|(?<=rmdir )[^/]+$")
GOOD = EQUAL, REFUSED, MISSED = "equal", "refused, else equal", "over before"
ENDS = 0, 2, -9, -15, 143  # of a program with a fault
LONGEST, PATIENCE = 1800.0, 2.0  # seconds: of a program, and of processes of which one has failed
# What is compiled serves in every folder: the names that JAX gives to programs would depend on the cache's own place.
CACHE = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}


@dataclass(frozen=True)
class Proof:
    """An experiment, its config, the folder of its runs, the seed, what may be drawn, and how many processes train."""

    experiment: list[str]
    config: RunConfig
    folder: Path
    seed: int
    scenarios: Sequence[str]
    kinds: Sequence[str]
    processes: int


class Fault(NamedTuple):
    """What is struck, some seconds after the n-th time of a line; a kind of fault (or none), and a share of its own."""

    scenario: str
    line: str = ""
    occurrence: int = 0
    delay: float = 0.0
    kind: str = ""
    amount: float = 0.0


def prove(proof: Proof, numbers: Sequence[int]) -> int:
    """Commit the faults of these numbers, print what becomes of each, and return how many changed or broke anything."""
    overrides = ", ".join(override.replace("=", ": ", 1) for override in proof.experiment[1:])
    (proof.folder / "two.yaml").write_text(f"base: {proof.experiment[0]}\noverrides: {{{overrides}}}\nseeds: [1, 2]\n")
    run_undisturbed(proof, "train", "made")

    @cache
    def undisturbed(scenario: str) -> tuple[dict[str, str], list[Any]]:
        return run_undisturbed(proof, scenario, scenario)

    counts: Counter[str] = Counter()
    for number in numbers:
        fault = draw(proof, number, lambda scenario: undisturbed(scenario)[1])
        result = commit(proof, proof.folder / f"fault-{number}", fault, undisturbed(fault.scenario)[0])
        place = f"{fault.line} ({fault.occurrence}), {fault.delay:.2f} s later"
        print(f"{number:>5}  {fault.scenario:<8}  {fault.kind:<13}  {result:<19}  {place}", flush=True)
        counts.update([fault.scenario, fault.kind, result])
    wrong = len(numbers) - sum(counts[result] for result in GOOD)
    met = [f"{counts[name]} {name}" for name in [*SCENARIOS, *KINDS, *GOOD] if counts[name]]
    print(f"\n{len(numbers)} faults: {', '.join(met)}")
    print(f"{wrong or 'no'} difference{'s' * (wrong != 1)}")
    return wrong


def draw(proof: Proof, number: int, lines_of: Callable[[str], list[Any]]) -> Fault:
    """The fault of a number; ``lines_of`` a scenario are those that its undisturbed program left.

    Lines of one sort are as likely together as those of another. Half of the signals come after their line.
    """
    chance = random.Random(f"{proof.seed} {number}")
    scenario, kind = chance.choice(proof.scenarios), chance.choice(proof.kinds)
    lines, sorts = lines_of(scenario), dict[str, list[int]]()
    for index, (line, *_) in enumerate(lines[:-1]):
        if line.startswith(STRUCK.get(kind, CHANGES)):
            sorts.setdefault(ALIKE.sub("", line), []).append(index)
    index = chance.choice(sorts[chance.choice([*sorts])])
    line, occurrence, moment = lines[index]
    until_next = lines[index + 1][2] - moment
    delay = max(0, chance.uniform(-until_next, until_next)) if kind in SIGNALS else 0
    return Fault(scenario, line, occurrence, delay, kind, chance.random())


def commit(proof: Proof, folder: Path, fault: Fault, expected: dict[str, str]) -> str:
    """Commit a fault, go on by the same command, and say how what is left compares; if it is equal, it is deleted."""
    begin(folder, fault.scenario)
    try:
        code = run(proof, folder, fault)
        result = EQUAL if Path(f"{folder}.committed").exists() else MISSED
        if damaged := damaged_steps(folder / "run"):
            raise RuntimeError(f"damaged the checkpoints {damaged}")
        if fault.kind == "flipped bit" and (files := files_to_read(folder, fault.scenario)):
            flip_bit(path := files[int(fault.amount * 10**6) % len(files)], fault.amount)
            if code := run(proof, folder, Fault(fault.scenario)):  # one line says so; nothing else may be lost by that
                result = REFUSED
                flip_bit(path, fault.amount)
        is_exported = (folder / "model").exists()  # whole: it would not be replaced
        if code != 0 and not is_exported and run(proof, folder, Fault(fault.scenario)) != 0:
            raise RuntimeError("does not go on")
        found = digest(fault.scenario, folder, proof.config)
        if differing := [name for name, value in expected.items() if found.get(name) != value]:
            raise RuntimeError(f"differs in {', '.join(differing)}")
    except Exception as error:  # of a program, or in what it left
        return f"{error}; see {folder}.log"
    shutil.rmtree(folder)
    return result


def files_to_read(folder: Path, scenario: str) -> list[Path]:
    """The files, none of them empty, that a program may read when it goes on."""
    found = files_below(folder)  # the caches have a scenario of their own
    names = [name for name in found if name.startswith("cache/") == (scenario == "cache")]
    return [found[name] for name in names if found[name].stat().st_size and not UNREAD.search(f"/{name}")]


def flip_bit(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    bit = int(place * 8 * len(content))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def begin(folder: Path, scenario: str) -> None:
    """Make a folder with what a scenario begins with."""
    folder.mkdir()
    made = folder.with_name("made")
    for path in [path for pattern in BEGINS_WITH.get(scenario, ["cache", "run"]) for path in made.glob(pattern)]:
        shutil.copytree(path, folder / path.relative_to(made), dirs_exist_ok=True)


def run_undisturbed(proof: Proof, scenario: str, name: str) -> tuple[dict[str, str], list[Any]]:
    """Run a program without a fault; digests of what it left, and its lines. UserError if it fails."""
    begin(folder := proof.folder / name, scenario)
    if run(proof, folder, Fault(scenario)) != 0:
        raise UserError(f"{scenario} fails without any fault; see {folder}.log")
    lines = map(json.loads, Path(f"{folder}.lines").read_text(encoding="utf-8").splitlines())
    if name != "made":
        shutil.copytree(folder / "cache", proof.folder / "made/cache", dirs_exist_ok=True)  # what was compiled
    struck = [each for each in lines if (" cache/" in each[0]) == (scenario == "cache")]
    return digest(scenario, folder, proof.config), struck


def run(proof: Proof, folder: Path, fault: Fault) -> int:
    """Run a program until its processes have ended; 0 or the exit code of one that failed. It prints to FOLDER.log.

    A lost lock brings a rival. RuntimeError if the program hangs, shows a traceback, or ends in another way than
    programs do; where several processes train, one that fails only ends the others soon.
    """
    end = time.monotonic() + LONGEST
    has_rival = fault.kind != "lost lock" or "EXPERIMENT" not in SCENARIOS[fault.scenario]
    with open(f"{folder}.log", "a+b") as output:
        begun, processes = output.tell(), start(proof, folder, fault, output)
        while None in (codes := [process.poll() for process in processes]) and time.monotonic() < end:
            if not has_rival and Path(f"{folder}.committed").exists():
                processes, has_rival = processes + start(proof, folder, Fault(fault.scenario), output), True
            if any(codes) and proof.processes > 1:
                end = min(end, time.monotonic() + PATIENCE)
            time.sleep(0.01)
        for process in processes:
            process.kill()
        code = max((process.wait() for process in processes), key=abs)
        output.seek(begun)
        if proof.processes == 1 and (None in codes or code not in ENDS or b"Traceback" in output.read()):
            raise RuntimeError(f"hangs, shows a traceback, or ends with {code}")
    return code


def start(proof: Proof, folder: Path, fault: Fault, output: IO[bytes]) -> list[subprocess.Popen[bytes]]:
    """Start the processes of a program."""
    environment = program_environment() | CACHE | {"XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment["PYTHONPATH"] = f"{Path(__file__).parent / 'inside'}{os.pathsep}{environment['PYTHONPATH']}"
    environment["PUENTE_FAULT"] = json.dumps([str(folder), *fault[1:]])
    places = {"EXPERIMENT": proof.experiment, "SWEEP": [str(proof.folder / "two.yaml")]}
    program, *arguments = [word for each in SCENARIOS[fault.scenario].split() for word in places.get(each, [each])]
    with socket.create_server(("localhost", 0)) as free:
        mesh = [f"mesh.coordinator=localhost:{free.getsockname()[1]}", f"mesh.processes={proof.processes}"]
    meshes = [[*mesh, f"mesh.process={number}"] for number in range(proof.processes)] if proof.processes > 1 else [[]]
    command, settings = [sys.executable, str(ROOT / program), *arguments], dict[str, Any](cwd=folder, env=environment)
    return [subprocess.Popen([*command, *mesh], stdout=output, stderr=output, **settings) for mesh in meshes]
