"""train.py as a whole: resuming is exact, mistakes end in one line, a dry run tells the sizes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from configs.load import load_config
from training.checkpoint import good_steps, notes, restore
from training.state import init_state

ROOT = Path(__file__).parents[1]
MEASURED = {"tokens_per_second", "target_tokens_per_second", "minutes", "minutes_left"}
EVERYTHING_ON = [
    "model.dropout=0.2",
    "data.subword_sampling=0.3",
    "data.window=64",
    "training.accumulation=2",
    "training.ema_decay=0.9",
    "training.patience=3",
    "training.log_every=2",
]


def outcome(run_dir, config):
    """Everything of a finished run that must not depend on interruptions."""
    step = good_steps(run_dir)[-1]
    state = restore(run_dir, step, init_state(config.model, config.training, 300))
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    metrics = [{key: value for key, value in line.items() if key not in MEASURED} for line in lines]
    noted = {key: value for key, value in notes(run_dir, step).items() if key != "seconds"}
    return state, metrics, noted, (run_dir / "eval" / "valid.translations.txt").read_text()


def assert_same_outcome(some, others):
    jax.tree.map(np.testing.assert_array_equal, some[0], others[0])
    assert some[1:] == others[1:]


def start(config_file, run_dir, *overrides):
    command = [sys.executable, str(ROOT / "train.py"), str(config_file), f"run_dir={run_dir}", *overrides]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE)


@pytest.mark.slow
def test_pausing_after_every_step_changes_nothing(small_experiment, tmp_path):
    from train import train

    changes = [*EVERYTHING_ON, "training.steps=4", "training.eval_every=3", "data.batch_rows=4"]
    straight = load_config(small_experiment, [*changes, f"run_dir={tmp_path / 'straight'}"])
    paused = load_config(small_experiment, [*changes, f"run_dir={tmp_path / 'paused'}", "training.minutes=1e-9"])
    train(straight)
    for step in range(1, 5):
        train(paused)
        assert good_steps(tmp_path / "paused")[-1] == step
    assert_same_outcome(outcome(tmp_path / "straight", straight), outcome(tmp_path / "paused", straight))


def test_a_finished_run_says_so_and_changes_nothing(small_experiment, tmp_path, call):
    command = "train.py", small_experiment, f"run_dir={tmp_path}", "training.steps=2"
    assert call(*command).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()}
    again = call(*command)
    assert again.returncode == 0
    assert b"is complete at step 2" in again.stderr
    assert before == {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()}

    refused = call(*command, "model.d_ff=64")
    assert refused.returncode == 2
    assert b"model.d_ff: 32" in refused.stderr
    assert refused.stderr.count(b"\n") == 1

    scored = call("eval.py", tmp_path, f"data.test={small_experiment.parent / 'valid.tsv'}")
    assert scored.returncode == 0, scored.stderr
    validated = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()][-1]
    report = json.loads((tmp_path / "eval" / "valid.json").read_text())
    assert (report["bleu"], report["chrf"]) == (validated["bleu"], validated["chrf"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.stepz=3", b"nearest valid name is training.steps"),
        ("data.root=/nowhere", b"no train file at /nowhere/train.tsv"),
        ("tokenizer.vocab_size=9000", b"too large for this corpus"),
        ("data.target=en", b"data.source and data.target"),
        ("training.seed=4294967296", b"training.seed must be at least 0 and less than 2**32"),
    ],
)
def test_mistakes_end_in_one_line_and_leave_nothing(small_experiment, tmp_path, call, override, message):
    result = call("train.py", small_experiment, f"run_dir={tmp_path / 'run'}", override)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert not (tmp_path / "run").exists()


def test_dry_run_counts_parameters_and_writes_nothing(small_experiment, tmp_path, call):
    result = call("train.py", small_experiment, f"run_dir={tmp_path / 'run'}", "dry_run=true")
    config = load_config(small_experiment)
    total = sum(leaf.size for leaf in jax.tree.leaves(init_state(config.model, config.training, 300).params))
    assert result.returncode == 0
    assert f"{total:,}".encode() in result.stdout
    assert b"d_model: 16" in result.stdout
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_three_sigkills_change_nothing(small_experiment, tmp_path):
    """Killed in a step, while a checkpoint is being written, and right after the restart."""
    changes = [*EVERYTHING_ON, "training.steps=24", "training.eval_every=6", "training.save_every=4"]
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert start(small_experiment, straight, *changes).wait() == 0

    def kill_when(condition):
        process = start(small_experiment, killed, *changes)
        while not condition():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        process.wait()

    checkpoints = killed / "checkpoints"
    kill_when(lambda: len((killed / "metrics.jsonl").read_bytes().splitlines()) >= 5 if checkpoints.exists() else False)
    restored = set(checkpoints.glob("[0-9]*"))
    kill_when(lambda: any(list(path.iterdir()) for path in checkpoints.glob(".[0-9]*")))
    assert list(checkpoints.glob(".[0-9]*"))  # a half-written checkpoint is there, and not believed
    assert {path.name for path in restored} <= {str(step) for step in good_steps(killed)}
    started = time.time()
    kill_when(lambda: (killed / "config.yaml").stat().st_mtime > started)
    assert start(small_experiment, killed, *changes).wait() == 0
    config = load_config(small_experiment, changes)
    assert_same_outcome(outcome(straight, config), outcome(killed, config))
