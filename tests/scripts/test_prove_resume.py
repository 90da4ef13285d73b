"""A short proof that kills change nothing; docs/reliability.md has the long one."""

import json
import re
import shutil
from dataclasses import asdict

import jax
import numpy as np
import pytest

from configs.load import load_config
from scripts.prove_resume import compare
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
    folder, told = proof
    assert re.search(r"^2 kills \(\d right after the start, .*\): no differences$", told, re.MULTILINE)
    rows = [line for line in told.splitlines() if line.endswith("  equal")]
    runs = len(list(folder.glob("killed-[0-9]")))
    assert len(rows) == 16 * runs and "DIFFERS" not in told
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
        assert compare(expected, found, "run") == len({key for key in expected if expected[key] != found[key]})
        return {key for key in expected if expected[key] != found[key]}

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


def test_mistakes_end_in_one_line(small_experiment, tmp_path, call):
    for arguments, problem in (
        (["--kills", 0, f"run_dir={tmp_path / 'new'}"], "--kills must be at least 1, not 0"),
        (["--kills", 1, "--processes", 0, f"run_dir={tmp_path / 'new'}"], "--processes must be at least 1, not 0"),
        (["--kills", 1, f"run_dir={tmp_path}"], "is there already: remove it, or set run_dir=NEW_FOLDER"),
    ):
        done = call(PROGRAM, small_experiment, *arguments)
        assert done.returncode == 2 and problem in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1
    assert not (tmp_path / "new").exists()
