"""A short proof that kills change nothing; docs/reliability.md has the long one."""

import json
import re
import shutil
from dataclasses import asdict

import jax
import numpy as np
import pytest

from configs.load import load_config
from experiment.resume_proof import print_differences
from scripts.prove_resume import main
from training.progress import Progress
from training.replay.run_digest import digest_run
from training.run.checkpoint import read_notes, restore, save
from training.state import state_shapes

CHANGES = ["model.dropout=0.2", "data.subword_sampling=0.3", "data.window=64", "training.accumulation=2"]
CHANGES += ["training.ema_decay=0.9", "training.log_every=2", "training.steps=8", "training.eval_every=4"]
CHANGES += ["training.save_every=2"]
PROGRAM = "scripts/prove_resume.py"


@pytest.fixture(scope="module")
def proof(small_experiment, tmp_path_factory, call):
    """The folder of a proof with two kills, and what it printed."""
    folder = tmp_path_factory.mktemp("proof") / "runs"
    done = call(PROGRAM, small_experiment, "--kills", 2, f"run_dir={folder}", *CHANGES)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return folder, done.stdout.decode()


@pytest.mark.nightly
def test_kills_change_nothing(proof):
    folder, printed = proof
    assert re.search(r"^2 kills \(\d right after the start, .*\): no differences$", printed, re.MULTILINE)
    rows = [line for line in printed.splitlines() if line.endswith("  equal")]
    runs = len(list(folder.glob("killed-[0-9]")))
    assert len(rows) == 16 * runs and "DIFFERS" not in printed
    assert {row.split("  ")[0] for row in rows} >= {
        "parameters",
        "optimizer state",
        "averaged parameters",
        "sequence of batches",
        "metrics.jsonl",
        "best checkpoint",
        "test scores",
    }


@pytest.mark.nightly
def test_every_difference_is_seen(proof, small_experiment, tmp_path, capsys):
    config = load_config(small_experiment, CHANGES)
    expected = digest_run(proof[0] / "straight", config.model, config.training, 300)
    run_dir = tmp_path / "run"
    shutil.copytree(proof[0] / "straight", run_dir)

    def differing():
        found = digest_run(run_dir, config.model, config.training, 300)
        differing = {key for key in expected if expected[key] != found[key]}
        assert print_differences(expected, found, "run") == len(differing)
        return differing

    assert differing() == set()
    metrics = run_dir / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines, lines[-1]]))
    assert differing() == {"lines of metrics.jsonl", "metrics.jsonl"}
    measured = json.loads(lines[0]) | {"tokens_per_second": 0.0}
    metrics.write_text("".join([json.dumps(measured) + "\n", *lines[1:]]))
    assert differing() == set()

    state = restore(run_dir, 8, state_shapes(config.model, config.training, 300))
    noted = Progress(**read_notes(run_dir, 8))
    turned = jax.tree.map(lambda leaf: -leaf, state.opt_state)  # zeros become -0.0: other bits, equal numbers
    save(run_dir, state._replace(opt_state=turned), asdict(noted))
    assert differing() == {"optimizer state"}
    nearly = jax.tree.map(lambda leaf: np.nextafter(leaf, np.float32(9)), state.averaged)
    save(run_dir, state._replace(averaged=nearly), asdict(noted) | {"batches": "other"})
    assert differing() >= {"averaged parameters", "sequence of batches"}
    assert "averaged parameters       " in capsys.readouterr().out


def test_mistakes_end_in_one_line(small_experiment, tmp_path, refuses):
    new = f"run_dir={tmp_path / 'new'}"
    refuses(main, "--kills: 0 must be a whole number from 1", small_experiment, "--kills", 0, new)
    refuses(main, "--processes: 0 must be a whole", small_experiment, "--kills", 1, "--processes", 0, new)
    there = f"run_dir={tmp_path}"
    refuses(main, "is there already: remove it, or set run_dir=NEW_FOLDER", small_experiment, "--kills", 1, there)
    assert not (tmp_path / "new").exists()
