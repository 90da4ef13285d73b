"""Faults are drawn by seed and number, are what they say, and what they change is seen."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np
import pytest

from configs.load import load_config
from tests.faults.commit import KINDS, Fault, Proof, draw, flip_bit
from tests.faults.prove import SMALL, main
from tests.faults.scenarios import SCENARIOS
from tests.mutations import ROOT, copy_tree
from tests.run_digest import digest_run
from tests.saved import save
from training.progress import Progress
from training.run.checkpoint import read_notes, restore
from training.state import state_shapes

COMMAND = [sys.executable, "-m", "tests.faults.prove"]
LINES = [["write run/log.txt", 1, 0.0], ["write run/checkpoints/.2/manifest.json", 1, 1.0], ["write run/d", 1, 2.0]]


@pytest.mark.slow
def test_two_faults_that_the_commit_chooses_change_nothing(tmp_path):
    commit = subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    seed = int(commit.stdout[:8] or "1", 16)
    command = [*COMMAND, f"--seed={seed}", "--faults=2", f"run_dir={tmp_path / 'faults'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("\nno differences\n"), done.stdout + done.stderr
    assert len(re.findall(r"^ +\d+  ", done.stdout, re.MULTILINE)) == 2
    assert not list(tmp_path.glob("faults/fault-*/"))


@pytest.mark.nightly
def test_every_difference_is_seen(tmp_path, call):
    config, run_dir = load_config(SMALL), tmp_path / "run"
    call("train.py", SMALL, f"data.root={SMALL.parent}", f"run_dir={run_dir}")
    expected = digest_run(run_dir, config.model, config.training, 300)

    def differing():
        found = digest_run(run_dir, config.model, config.training, 300)
        return {key for key in expected if expected[key] != found[key]}

    assert differing() == set()
    metrics = run_dir / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines, lines[-1]]))
    assert differing() == {"lines of metrics.jsonl", "metrics.jsonl"}
    measured = json.loads(lines[0]) | {"tokens_per_second": 0.0}
    metrics.write_text("".join([json.dumps(measured) + "\n", *lines[1:]]))
    assert differing() == set()

    state = restore(run_dir, 6, state_shapes(config.model, config.training, 300))
    noted = Progress(**read_notes(run_dir, 6))
    turned = jax.tree.map(lambda leaf: -leaf, state.opt_state)  # zeros become -0.0: other bits, equal numbers
    save(run_dir, state._replace(opt_state=turned), asdict(noted))
    assert differing() == {"optimizer state"}
    nearly = jax.tree.map(lambda leaf: np.nextafter(leaf, np.float32(9)), state.averaged)
    save(run_dir, state._replace(averaged=nearly), asdict(noted) | {"batches": "other"})
    assert differing() >= {"averaged parameters", "sequence of batches"}


@pytest.mark.nightly
def test_a_manifest_that_comes_after_its_checkpoint_is_found_within_fifty_faults(tmp_path):
    tree = copy_tree(tmp_path / "tree")
    file = tree / "training/run/write_trees.py"
    whole, early = file.read_text(), "                _rename(temporary, final, replaced)\n"
    late = "                write_manifest(temporary, step, notes)\n"
    assert whole.count(early) == whole.count(late) == 1
    file.write_text(whole.replace(late, "").replace(early, early + late.replace("temporary", "final")))
    command = [*COMMAND, "--seed=1", "--faults=50", "--scenarios=train", f"run_dir={tmp_path / 'faults'}"]
    done = subprocess.run(command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True)
    assert done.returncode == 1 and "damaged the checkpoints" in done.stdout, done.stdout + done.stderr


TWO_WRITES = """
import time
now = time.time()
for name in ("a", "b"):
    with open(name, "a") as file:
        file.write("0123456789")
open("c", "w")
print(time.time() - now)
"""


@pytest.fixture
def commit(tmp_path):
    """``commit(kind)`` runs a program with a fault where it writes b; returns its end, and what is in b."""

    def commit(kind, amount=0.5):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "b").write_text("was here;")
        (folder / ".lock").touch()
        plan = json.dumps([str(folder), *Fault("", "write b", 1, 0.0, kind, amount)[1:]])
        inside = {"PUENTE_FAULT": plan, "PYTHONPATH": str(ROOT / "tests/faults/inside")}
        command = [sys.executable, "-c", TWO_WRITES]
        done = subprocess.run(command, cwd=folder, env=os.environ | inside, capture_output=True, text=True)
        assert Path(f"{folder}.committed").exists()
        assert '["write a", 1, ' in Path(f"{folder}.lines").read_text()
        return done, (folder / "b").read_text()

    return commit


def test_each_kind_is_what_it_says(commit, tmp_path):
    ends = {"SIGKILL": -signal.SIGKILL, "flipped bit": -signal.SIGKILL, "SIGTERM twice": -signal.SIGTERM}
    for kind, end in ends.items():
        done, written = commit(kind)
        assert (done.returncode, written) == (end, "was here;")
    for kind in ("ENOSPC", "EIO"):
        done, written = commit(kind)
        assert os.strerror(getattr(errno, kind)) in done.stderr and written == "was here;"
    done, written = commit("torn write")
    assert (done.returncode, written) == (-signal.SIGKILL, "was here;01234")
    assert abs(float(commit("clock", 0.75)[0].stdout) - 15 * 86_400) < 60
    assert float(commit("slow disk", 0.2)[0].stdout) > 0.4
    commit("lost lock")
    assert not (tmp_path / "lost lock/.lock").exists()
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {*KINDS}
    (tmp_path / "bits").write_bytes(b"\0\0")
    flip_bit(tmp_path / "bits", 0.5)
    assert (tmp_path / "bits").read_bytes() == b"\0\1"


def test_a_fault_is_a_function_of_seed_and_number(tmp_path, small_experiment):
    def drawn(seed):
        proof = Proof([], load_config(small_experiment), tmp_path, seed, [*SCENARIOS], KINDS, 1)
        return [draw(proof, number, lambda scenario: LINES) for number in range(200)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert {fault.scenario for fault in drawn(1)} == {*SCENARIOS} and {fault.kind for fault in drawn(1)} == {*KINDS}


def test_mistakes_end_in_one_line(tmp_path, refuses):
    new = f"run_dir={tmp_path / 'new'}"
    refuses(main, "--faults: 0 must be a whole number from 1", "--seed", 1, "--faults", 0, new)
    refuses(main, "one of the arguments --faults --replay is required", "--seed", 1, new)
    unknown = ("--scenarios", "traim"), ("--scenarios", "SIGKILL"), ("--kinds", "train")
    for option, name in unknown:
        known = "train,sweep," if option == "--scenarios" else "SIGKILL,SIGTERM twice,"
        message = f"{option}: there is no {name} here; choose from {known}"
        refuses(main, message, "--seed", 1, "--faults", 1, option, name, new)
    there = "is there already: remove it, or set run_dir=NEW_FOLDER"
    refuses(main, there, "--seed", 1, "--replay", 1, f"run_dir={tmp_path}")
    assert not (tmp_path / "new").exists()
