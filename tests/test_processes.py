"""Two real processes train one run: what they compute, who speaks, and how each way to end ends both."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from common.errors import UserError
from common.programs import ROOT
from configs.load import load_config
from tests.processes import run_code
from train import train
from training.config import MeshConfig
from training.devices.distributed import CLAIMS, claim_number, started_by_scheduler
from training.run.checkpoint import read_notes
from training.run.lock import lock_run
from training.run.metrics import read_metrics
from training.run.retention import damaged_steps, good_steps

LIMIT = 400  # seconds: a process that takes longer hangs
PROGRAM = [str(ROOT / "train.py")]
IMPATIENT = """
from cli.process import prepare_process
prepare_process()
import train, training.run.lock
training.run.lock.PATIENCE = 1.0
train.main()
"""
CHEAP = ["data.batch_rows=4", "decoding.beam_size=1", "training.log_every=1"]
LONG = ["training.steps=100000", "training.eval_every=100000", "training.save_every=2", "training.keep=2"]
LONG += ["training.save_minutes=1e-9"]  # the processes agree on what their clocks say


def free_port():
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        return bound.getsockname()[1]


def by_hand():
    """The settings of each of two processes, as somebody gives them who starts both."""
    coordinator = f"mesh.coordinator=localhost:{free_port()}"
    return [[coordinator, "mesh.processes=2", f"mesh.process={number}"] for number in (0, 1)]


@pytest.fixture
def start(small_experiment):
    """``start(run_dir, *overrides)`` starts the two processes of a run; what is left of them at the end is killed."""
    started = []

    def start(run_dir, *overrides, own=None, variables=({}, {}), folders=(None, None), program=PROGRAM):
        for overrides_of_one, variables_of_one, folder in zip(own or by_hand(), variables, folders, strict=True):
            command = [sys.executable, *program, small_experiment, f"run_dir={run_dir}", *CHEAP]
            environment = os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
            process = subprocess.Popen(
                [*command, *overrides, *overrides_of_one],
                env=environment | variables_of_one,
                cwd=folder,
                stdout=subprocess.PIPE,  # where Gloo tells that it is connected
                stderr=subprocess.PIPE,
                text=True,
            )
            started.append(process)
        return started[-2:]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(processes):
    """For each process its exit code and what it told, but for what Gloo tells when it is connected."""
    told = [told_by(process) for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, told, strict=True)]


def told_by(process):
    out, err = process.communicate(timeout=LIMIT)
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("[Gloo]")) + err


def assert_complete(processes):
    both = ended(processes)
    assert [code for code, _ in both] == [0, 0], "\n".join(told for _, told in both)


def train_here(config_file, run_dir, *overrides):
    """One process, with the one device of this test."""
    train(load_config(config_file, [*CHEAP, *overrides, f"run_dir={run_dir}"]))


def assert_same_run(run_dir, other):
    """The same batches, and the same numbers but for rounding."""
    step = good_steps(run_dir)[-1]
    assert step == good_steps(other)[-1]
    assert read_notes(run_dir, step)["batches"] == read_notes(other, step)["batches"]
    for line, expected in zip(read_metrics(run_dir), read_metrics(other), strict=True):
        assert [line.pop("kind"), *line] == [expected.pop("kind"), *expected]
        np.testing.assert_allclose(list(line.values()), list(expected.values()), rtol=0, atol=1e-5)
    texts = [(folder / "eval" / "valid.translations.txt").read_text() for folder in (run_dir, other)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "axis", [pytest.param("data", marks=pytest.mark.slow), pytest.param("tensor", marks=pytest.mark.nightly)]
)
def test_two_processes_train_what_one_trains_and_one_of_them_speaks(start, small_experiment, tmp_path, axis):
    """Along tensor, both hold every row."""
    changes = ["training.steps=3", "training.eval_every=3"]
    processes = start(tmp_path / "two", f"mesh.{axis}=2", *changes)
    train_here(small_experiment, tmp_path / "one", *changes)
    (first, told), (second, told_by_second) = ended(processes)
    assert (first, second) == (0, 0), told + told_by_second
    assert f"step 0 of 3 on 2 × cpu ({axis} 2) in 2 processes" in told
    assert not told_by_second
    assert_same_run(tmp_path / "two", tmp_path / "one")


@pytest.mark.nightly
def test_a_run_goes_from_two_processes_to_one_and_back(start, small_experiment, tmp_path):
    changes = ["training.steps=6", "training.eval_every=3", "model.dropout=0.1", "training.ema_decay=0.9"]
    run_dir, pausing = tmp_path / "moved", [*changes, "training.minutes=1e-9"]
    assert_complete(start(run_dir, *pausing))
    train_here(small_experiment, run_dir, *pausing)
    assert good_steps(run_dir)[-1] == 2
    assert_complete(start(run_dir, *changes))
    train_here(small_experiment, tmp_path / "straight", *changes)
    assert_same_run(run_dir, tmp_path / "straight")


def in_steps(run_dir):
    return len(lines_of(run_dir)) > 2


def in_a_save(run_dir):
    return len(lines_of(run_dir)) > 2 and any((run_dir / "checkpoints").glob(".*"))


def lines_of(run_dir):
    path = run_dir / "metrics.jsonl"
    return path.read_text().splitlines() if path.exists() else []


def wait_until(condition, run_dir, processes):
    for _ in range(LIMIT * 1000):
        if condition(run_dir):
            return
        assert all(process.poll() is None for process in processes), ended(processes)
        time.sleep(0.001)
    raise AssertionError(f"{run_dir} was never {condition.__name__}")


@pytest.mark.nightly
@pytest.mark.parametrize("moment", [in_steps, in_a_save])
def test_a_killed_process_ends_the_other_with_a_line_and_the_same_command_continues(moment, start, tmp_path):
    processes = start(tmp_path, *LONG)
    wait_until(moment, tmp_path, processes)
    processes[1].kill()
    (code, told), _ = ended(processes)
    assert code == 1
    assert "another process of this run is gone, or cannot be reached: the same command continues" in told
    assert "Traceback" not in told
    newest = good_steps(tmp_path)[-1]
    assert damaged_steps(tmp_path) == []

    processes = start(tmp_path, *LONG, "training.minutes=1e-9")
    (code, told), _ = ended(processes)
    assert code == 0
    assert f"step {newest} of 100000 on" in told and f"paused at step {newest + 1}" in told


@pytest.mark.nightly
@pytest.mark.parametrize("asked", [[0, 1], [1]])
def test_a_signal_to_both_processes_or_to_one_pauses_the_run(asked, start, tmp_path):
    processes = start(tmp_path, *LONG)
    wait_until(in_steps, tmp_path, processes)
    for number in asked:
        processes[number].send_signal(signal.SIGTERM)
    both = ended(processes)
    told = both[0][1]
    assert [code for code, _ in both] == [128 + signal.SIGTERM if number in asked else 0 for number in (0, 1)], both
    reason = "SIGTERM" if 0 in asked else "a signal to another process"
    assert f"paused at step {good_steps(tmp_path)[-1]} after {reason}; the same command continues" in told


@pytest.mark.nightly
def test_processes_with_different_configs_are_refused_all_of_them(start, tmp_path):
    first, second = by_hand()
    both = ended(start(tmp_path / "run", own=[first, [*second, "training.seed=2"]]))
    for code, told in both:
        assert code == 2
        assert told == "error: process 1 has a different config than process 0: give all of them the same\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.nightly
def test_a_mistake_that_the_first_process_alone_meets_ends_all(start, tmp_path):
    with lock_run(tmp_path):
        (code, told), (code_of_second, _) = ended(start(tmp_path))
    assert code == 2 and code_of_second not in (0, 2)
    assert "is in use by process" in told and told.count("\n") == 1


@pytest.mark.nightly
def test_slurm_is_asked_for_the_others(start, tmp_path):
    of_step = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
    of_step |= {"SLURM_STEP_NUM_TASKS": "2", "JAX_COORDINATOR_PORT": str(free_port())}
    of_both = [of_step | {"SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)} for number in (0, 1)]
    first, second = start(tmp_path / "run", "dry_run=true", own=([], []), variables=of_both)
    plan, told = first.communicate(timeout=LIMIT)
    assert first.returncode == 0, told
    assert "2 × cpu (data 2) in 2 processes" in plan
    assert second.communicate(timeout=LIMIT) == ("", "") and second.returncode == 0


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, False),
        ({"SLURM_STEP_NUM_TASKS": "2"}, True),
        ({"SLURM_STEP_NUM_TASKS": "1"}, False),
        ({"SLURM_NTASKS": "8"}, False),  # of an allocation in which one process was started without srun
        ({"OMPI_COMM_WORLD_SIZE": "2"}, True),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),  # any pod
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "0"}, True),
    ],
)
def test_what_tells_of_a_scheduler(variables, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", variables)
    assert started_by_scheduler() is expected


def test_a_port_that_another_program_has_is_told_at_once():
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"^port {port} cannot be used .*: is another program using it"):
            claim_number(MeshConfig(coordinator=f"localhost:{port}", processes=2, process=0))
    CLAIMS.clear()
    claim_number(MeshConfig(coordinator=f"localhost:{port}", processes=2, process=0))
    CLAIMS.clear()


@pytest.mark.skipif(sys.platform != "linux", reason="sockets without a file, which end with their process")
@pytest.mark.parametrize("number", [0, 1])
def test_a_number_that_another_process_has_is_told_at_once(number):
    config = MeshConfig(coordinator=f"localhost:{free_port()}", processes=3, process=number)
    claim_number(config)
    with pytest.raises(UserError, match=f"^mesh.process={number} is running here already"):
        claim_number(config)
    claim_number(replace(config, process=2))  # another number of this run, and this one of another run
    claim_number(replace(config, coordinator=f"localhost:{free_port()}"))
    CLAIMS.clear()


@pytest.mark.slow
@pytest.mark.parametrize("has_copy", [False, True], ids=["no folder", "another folder"])
def test_processes_that_do_not_share_the_run_directory_are_refused_before_the_first_step(start, tmp_path, has_copy):
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    if has_copy:
        (folders[1] / "run/checkpoints").mkdir(parents=True)
    for code, told in ended(start("run", "training.steps=3", folders=folders, program=["-c", IMPATIENT])):
        assert code == 2
        assert told.strip().splitlines()[-1].startswith("error: run is not the same folder for all processes")
    assert not (folders[0] / "run").exists()


@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_process_that_stays_alone_says_so(number):
    code = (
        "from training.devices import distributed; from training.config import MeshConfig\n"
        "distributed.STARTUP_TIMEOUT = 1\n"
        f"distributed.join_processes(MeshConfig(coordinator='localhost:{free_port()}', processes=2, process={number}))"
    )
    done = run_code(code)
    assert done.returncode == 2
    assert done.stderr == (
        "error: the processes of this run did not find each other in 1 seconds: start all of them, each with the "
        "mesh.coordinator of the first\n"
    )
