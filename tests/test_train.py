"""train.py as a whole: resuming is exact, mistakes end in one line, a dry run tells the sizes."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import jax
import numpy as np
import pytest

import experiment.open_run
import training.validation
from common.errors import UserError
from common.programs import ROOT
from common.signals import Interrupted
from configs.load import load_config, load_run_config
from data.batches.packing import Batch
from data.batches.stream import prefetch
from tests.run_digest import digest_run
from train import train
from training.run import write_trees
from training.run.checkpoint import read_notes, restore
from training.run.metrics import read_metrics
from training.run.monitor import Monitor
from training.run.retention import good_steps
from training.state import state_shapes

EVERYTHING_ON = """
model.dropout=0.2 model.activation_dropout=0.1 model.source_word_dropout=0.1 model.target_word_dropout=0.1
model.decoder_layer_drop=0.2 training.consistency=simcut training.optimizer=muon data.direction=both
data.subword_sampling=0.3 data.window=64 training.accumulation=2 training.ema_decay=0.9 training.patience=3
training.log_every=2
""".split()
SHORT = ["training.steps=6", "training.eval_every=3", "training.log_every=4", "training.keep=3"]


def outcome_of(run_dir):
    """Everything of a finished run that must not depend on interruptions."""
    config = load_run_config(run_dir)
    return digest_run(run_dir, config.model, config.training, 300)


def start(config_file, run_dir, *overrides, **environment):
    command = [sys.executable, str(ROOT / "train.py"), str(config_file), f"run_dir={run_dir}", *overrides]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | environment)


@pytest.mark.slow
def test_pausing_after_every_step_changes_nothing(small_experiment, tmp_path):
    changes = [*EVERYTHING_ON, "training.steps=4", "training.eval_every=3", "data.batch_rows=4"]
    straight = load_config(small_experiment, [*changes, f"run_dir={tmp_path / 'straight'}"])
    paused = load_config(small_experiment, [*changes, f"run_dir={tmp_path / 'paused'}", "training.minutes=1e-9"])
    train(straight)
    for step in range(1, 5):
        train(paused)
        assert good_steps(tmp_path / "paused")[-1] == step
    assert outcome_of(tmp_path / "paused") == outcome_of(tmp_path / "straight")


@pytest.mark.slow
def test_saves_by_the_clock_change_nothing(small_experiment, tmp_path):
    """Too many minutes have always passed, or never will; a run that is never evaluated but at its end."""
    changes = ["training.steps=4", "training.keep=9", "training.log_every=2", "training.eval_every=4"]
    found = []
    for minutes, expected in ((1e-9, [1, 2, 3, 4]), (1e9, [4])):
        run_dir = tmp_path / str(minutes)
        train_here(small_experiment, run_dir, *changes, f"training.save_minutes={minutes}")
        assert good_steps(run_dir) == expected
        found.append(outcome_of(run_dir))
    assert found[0] == found[1]


def test_a_finished_run_says_so_and_changes_nothing(small_experiment, tmp_path, capsys):
    train_here(small_experiment, tmp_path, "training.steps=2")
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()}
    train_here(small_experiment, tmp_path, "training.steps=2")
    assert "is complete at step 2" in capsys.readouterr().out
    assert before == {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()}


def test_dry_run_counts_parameters_and_writes_nothing(small_experiment, tmp_path, call):
    result = call("train.py", small_experiment, f"run_dir={tmp_path / 'run'}", "dry_run=true")
    config = load_config(small_experiment)
    params = state_shapes(config.model, config.training, 300).params
    total = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert f"{total:,}".encode() in result.stdout
    assert b"d_model: 16" in result.stdout and b" GiB\n  " in result.stdout  # and nothing of the device's memory
    assert b"\ncorpus               160 pairs (dropped: none)" in result.stdout and b"\ntraining    " in result.stdout
    assert not (tmp_path / "run").exists()


def train_here(config_file, run_dir, *overrides):
    """train.py in this process."""
    train(load_config(config_file, [*overrides, f"run_dir={run_dir}"]))


@pytest.mark.slow
def test_short_references_and_a_rising_validation_loss_are_told_beside_the_scores(small_experiment, tmp_path):
    """Targets that training never had: the better it knows its own pairs, the worse it does there."""
    (tmp_path / "short.tsv").write_text("".join(f"{word} 7\t7 {word.upper()}\n" for word in ("qu", "wz", "xk", "jy")))
    changes = ["training.steps=90", "training.eval_every=30", "training.learning_rate=1e-2", "training.warmup_steps=10"]
    train_here(small_experiment, tmp_path / "run", *changes, f"data.valid={tmp_path / 'short.tsv'}")
    losses = [line["loss"] for line in read_metrics(tmp_path / "run") if line["kind"] == "valid"]
    risen = [loss > 1.05 * min(losses[: number + 1]) for number, loss in enumerate(losses)]
    told = (tmp_path / "run" / "log.txt").read_text(encoding="utf-8")
    assert len(losses) == 3 and any(risen) and told.count("validation loss has risen from") == 1
    assert told.count("only 0 of 4 sentences have references that long: read chrF instead") == 3


@pytest.mark.slow
def test_sigterm_ends_the_step_saves_and_says_how_to_go_on_and_a_second_ctrl_c_kills(small_experiment, tmp_path):
    """The run goes on where it was; tests below and those by faults have the digests."""
    changes, run = ["training.steps=100000", "training.eval_every=100000", "training.log_every=1"], tmp_path / "run"
    process = start(small_experiment, run, *changes)
    wait_until(lambda: steps_told(run) >= 3, process)
    process.send_signal(signal.SIGTERM)
    lines, told = (stream.decode() for stream in process.communicate())
    assert process.returncode == 128 + signal.SIGTERM, told
    step = good_steps(run)[-1]
    assert step == steps_told(run)
    assert "SIGTERM: finishing the step and saving" in told
    assert f"paused at step {step} after SIGTERM; the same command continues" in lines
    assert lines == (run / "log.txt").read_text(encoding="utf-8")

    process = start(small_experiment, run, *changes)
    wait_until(lambda: steps_told(run) > step, process)
    process.send_signal(signal.SIGINT)
    while b"again: quit at once" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == -signal.SIGINT


@pytest.mark.slow
def test_sigterm_while_the_first_step_is_compiled_ends_as_at_any_time(small_experiment, tmp_path):
    """In XLA, which no signal interrupts: after that, the interpreter's orderly end was a segmentation fault."""
    cold = {"JAX_COMPILATION_CACHE_DIR": "", "JAX_LOG_COMPILES": "1"}
    process = start(small_experiment, tmp_path / "run", **cold)
    told = iter(process.stderr.readline, b"")
    assert any(b"Finished jaxpr to MLIR module conversion jit(train_step)" in line for line in told)
    process.send_signal(signal.SIGTERM)
    assert b"\nSIGTERM: the same command continues from the last checkpoint\n" in process.communicate()[1]
    assert process.returncode == 128 + signal.SIGTERM


@pytest.fixture(scope="module")
def straight(small_experiment, tmp_path_factory):
    """What a run of six steps leaves that nothing interrupts."""
    run_dir = tmp_path_factory.mktemp("straight") / "run"
    train_here(small_experiment, run_dir, *SHORT)
    return outcome_of(run_dir)


@pytest.mark.slow
def test_a_signal_in_an_evaluation_loses_nothing(small_experiment, straight, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("not reached")

    for moment in ("evaluate", "write_report"):  # the second comes when the line of metrics is written, and not noted
        with monkeypatch.context() as patch:
            patch.setattr(training.validation, moment, interrupted)
            with pytest.raises(Interrupted):
                train_here(small_experiment, tmp_path, *SHORT)
        assert good_steps(tmp_path)[-1] == 3 and read_notes(tmp_path, 3)["evaluated"] == 0
    train_here(small_experiment, tmp_path, *SHORT)
    assert outcome_of(tmp_path) == straight


@pytest.mark.slow
def test_a_save_that_fails_while_training_goes_on_ends_it_and_the_same_command_continues(
    small_experiment, straight, tmp_path, monkeypatch
):
    """The disk fills up while step 4 is saved, and step 5 is taken before that is known."""
    often = [*SHORT, "training.save_every=4", "training.keep=9"]
    failed, taken, rename = threading.Event(), list[int](), write_trees._rename

    def rename_or_fail(temporary, final, replaced):
        if final.name == "4":
            failed.set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rename(temporary, final, replaced)

    def advance(monitor):
        taken.append(len(taken) + 1)
        if len(taken) == 5:
            assert failed.wait(60)
            time.sleep(0.5)

    with monkeypatch.context() as patch:
        patch.setattr(write_trees, "_rename", rename_or_fail)
        patch.setattr(Monitor, "advance", advance)
        told = r"checkpoints/4 \(earlier ones are as they were\): No space left on device"
        with pytest.raises(UserError, match=told):
            train_here(small_experiment, tmp_path, *often)
    assert taken == [1, 2, 3, 4, 5]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["3"]
    train_here(small_experiment, tmp_path, *often)
    assert outcome_of(tmp_path) == straight


@pytest.mark.slow
def test_updates_that_are_not_finite_are_counted_and_too_many_stop_the_run(small_experiment, tmp_path):
    changes = ["training.learning_rate=1e16", "training.warmup_steps=1", "training.max_skipped=3"]
    changes += ["training.log_every=1", "training.save_every=1", "training.eval_every=100", "training.keep=9"]
    with pytest.raises(UserError, match=r"not finite 3 times in a row, up to step 4 \(batch 3 of epoch 0, from 0\)"):
        train_here(small_experiment, tmp_path, *changes)
    lines = read_metrics(tmp_path)
    assert [line["skipped"] for line in lines] == [0, 1, 1, 1][: len(lines)]
    assert lines[0]["loss"] > 0 and lines[1]["loss"] == "nan"
    first, last = good_steps(tmp_path)[0], good_steps(tmp_path)[-1]
    assert (first, last) == (1, 3)
    config = load_config(small_experiment, changes)
    states = [restore(tmp_path, step, state_shapes(config.model, config.training, 300)) for step in (1, 3)]
    jax.tree.map(np.testing.assert_array_equal, states[0].params, states[1].params)
    with pytest.raises(UserError, match="3 times in a row, up to step 4"):  # and so it does where no step is saved
        train_here(small_experiment, tmp_path / "unsaved", *changes, "training.save_every=0")


@pytest.mark.slow
def test_a_run_goes_on_with_another_config_or_corpus_only_as_far_as_they_allow(
    small_experiment, tmp_path, capsys, monkeypatch
):
    folder = tmp_path / "corpus"
    shutil.copytree(small_experiment.parent, folder)
    experiment, run_dir = folder / "small.yaml", tmp_path / "run"
    train_here(experiment, run_dir, f"data.root={folder}", "training.steps=2")
    before = (run_dir / "config.yaml").read_bytes(), (run_dir / "data.json").read_bytes()
    longer = [f"data.root={folder}", "training.steps=4"]
    (folder / "train.tsv").write_text((folder / "train.tsv").read_text().replace("Tom", "Tim"))
    capsys.readouterr()
    train_here(experiment, run_dir, *longer, "training.learning_rate=0.5", "allow_changes=true")
    told = capsys.readouterr().out
    assert "with training.steps: 2 → 4 (harmless)" in told
    assert re.search(r"with data\.train: SHA-256 \w{8} → \w{8} \(changes the training\)", told)
    assert (run_dir / "config.until-2.yaml").read_bytes() == before[0]
    assert (run_dir / "data.until-2.json").read_bytes() == before[1]
    assert "allow_changes: false" in (run_dir / "config.yaml").read_text()
    assert f"continuing {run_dir} from step 2 with training.learning_rate: 0.001 → 0.5" in told
    assert (run_dir / "log.txt").read_text().endswith(told)

    train_here(experiment, run_dir, *longer, "training.learning_rate=0.5")  # what was accepted is the run's own now
    assert "continuing" not in capsys.readouterr().out

    (folder / "valid.tsv").write_text("another set\tde validación\n")
    with pytest.raises(UserError, match=r"data\.valid: SHA-256 \w{8} → \w{8} \(changes the validation\)"):
        train_here(experiment, run_dir, *longer, "training.learning_rate=0.5")


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_is_passed_over_and_the_run_ends_as_without_damage(
    small_experiment, straight, tmp_path, capsys
):
    for _ in range(2):
        train_here(small_experiment, tmp_path, *SHORT, "training.minutes=1e-9")
    victim = max((tmp_path / "checkpoints" / "2" / "params").rglob("*"), key=lambda path: path.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1])
    capsys.readouterr()
    train_here(small_experiment, tmp_path, *SHORT)
    assert "has damaged checkpoints: 2; continuing from step 1" in capsys.readouterr().err
    assert outcome_of(tmp_path) == straight


def wait_until(condition, process):
    while not condition():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.0005)


def steps_told(run_dir):
    """The last step of the metrics."""
    path = run_dir / "metrics.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return json.loads(lines[-1])["step"] if lines and lines[-1].endswith(b"}") else 0


@pytest.mark.slow
def test_a_run_compiles_its_step_once_and_refuses_other_batches(small_experiment, tmp_path, monkeypatch):
    seconds = []

    def listen(event, duration_secs, **kwargs):
        if event.endswith("backend_compile_duration") and kwargs["fun_name"] == "jit(train_step)":
            seconds.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    changes = ["training.log_every=1", "training.save_every=1", "decoding.beam_size=1", "model.dropout=0"]
    train_here(small_experiment, tmp_path, *changes, "training.steps=3", "training.eval_every=2")
    assert len(seconds) == 1

    monkeypatch.setattr(experiment.open_run, "prefetch", with_longer_rows_in_the_second_batch)
    with pytest.raises(TypeError, match=r"batch\.source_tokens' compiled with int32\[2,\d+\] and called with int32"):
        train_here(small_experiment, tmp_path, *changes, "training.steps=6", "training.eval_every=2")
    jax.monitoring.unregister_event_duration_listener(listen)
    assert len(seconds) == 2  # one for each start
    assert steps_told(tmp_path) == 4


def with_longer_rows_in_the_second_batch(stream, first_step, depth, rows, prepare):
    """The run's batches, but the rows of the second are twice as long."""

    def lengthen(step, batch):
        longer = Batch(*(np.concatenate([rows, rows], axis=1) for rows in batch))
        return prepare(step, longer if step == first_step + 1 else batch)

    return prefetch(stream, first_step, depth, rows, lengthen)
