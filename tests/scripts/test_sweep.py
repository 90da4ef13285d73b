"""Sweeps: what each job gets of the machine, and cells that are trained, stopped, killed, skipped and refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.files import write_atomically
from common.programs import ROOT, program_environment
from experiment.sweep.cells import load_sweep
from experiment.sweep.jobs import Job, Jobs, launch, shares
from scripts.sweep import main
from training.run.lock import lock_run

COUNTING = "trap 'echo TERM' TERM; echo ready; until [ -e end ]; do sleep 0.1; done"
STAND_IN = "#!/bin/sh\ntrap 'exit 143' TERM\necho $* > started\nwhile :; do sleep 0.1; done\n"
TEXT = "base: small.yaml\noverrides: {OVERRIDES}\ngrid: {model.dropout: [0.1, 0.2]}\nseeds: [1]\n"


@pytest.fixture
def folder(tmp_path, small_experiment, monkeypatch):
    """A working directory with a sweep of two cells, of 10 updates each."""
    shutil.copy(small_experiment, tmp_path / "small.yaml")
    write_sweep(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_sweep(folder, overrides="training.eval_every: 5"):
    (folder / "mine.yaml").write_text(TEXT.replace("OVERRIDES", overrides))


def test_cores_are_divided(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5, 7})
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert [sorted(share.cores) for share in shares(2)] == [[0, 2, 7], [1, 5]]
    assert [sorted(share.cores) for share in shares(None)] == [[]]
    assert [sorted(share.cores) for share in shares(6)] == [[]] * 6


def test_each_job_has_a_gpu(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert [share.environment for share in shares(None)] == [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in "35"]
    assert [share.environment["CUDA_VISIBLE_DEVICES"] for share in shares(3)] == ["3", "5", "3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [share.environment for share in shares(None)] == [{}]


PARENT = """
import os, sys, time
from experiment.sweep.jobs import Share, launch
child = "import os, time; print(os.getpid(), len(os.sched_getaffinity(0)), os.environ['X'], flush=True); time.sleep(60)"
with open("child", "wb") as file:
    launch([sys.executable, "-c", child], Share(frozenset([min(os.sched_getaffinity(0))]), {"X": "y"}), file)
while not os.path.getsize("child"):
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_job_gets_its_share_and_ends_with_its_parent(tmp_path):
    """The parent starts a sleeping child and is killed at once."""
    parent = subprocess.run([sys.executable, "-c", PARENT], cwd=tmp_path, env=program_environment(), timeout=60)
    assert parent.returncode == -signal.SIGKILL
    pid, cores, variable = (tmp_path / "child").read_text().split()
    assert (cores, variable) == ("1", "y")
    wait_for(lambda: has_ended(int(pid)))


def has_ended(pid):
    """Whether a process has ended; one that nobody waits for may stay as a zombie."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.nightly
def test_ctrl_c_saves_what_was_training_and_ends_with_130(folder):
    write_sweep(folder, "training.steps: 100000, training.log_every: 1")
    program = [sys.executable, str(ROOT / "scripts/sweep.py"), "mine.yaml"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: list(Path("runs").glob("sweeps/mine/*/metrics.jsonl")))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and b"stopped; what was training is saved" in err
    assert list(Path("runs").glob("sweeps/mine/*/checkpoints/[0-9]*"))


@pytest.mark.slow
def test_complete_cells_are_skipped_failed_ones_tried_again_and_the_test_set_is_scored(folder, run_main):
    code, out, err = run_main(main, "mine.yaml", "--status")
    assert (code, err) == (0, "") and out.startswith("CELLS\n2 waiting\n") and not Path("runs").exists()
    blocked = Path("runs/sweeps/mine/dropout=0.2,seed=1")
    blocked.parent.mkdir(parents=True)
    blocked.write_text("")  # a file where a cell's folder should be
    code, out, err = run_main(main, "mine.yaml")
    assert code == 2 and "dropout=0.1,seed=1: complete at step 10, BLEU" in out
    assert err.startswith("error: 1 of 2 cells failed; the same command tries again: dropout=0.2,seed=1 (error: ")
    assert err.count("\n") == 1
    blocked.unlink()
    code, out, err = run_main(main, "mine.yaml")
    assert (code, err) == (0, "") and "2 cells, 1 of them complete\ndropout=0.2,seed=1: training" in out
    assert "dropout=0.1,seed=1:" not in out and "\nDIFFERENCES\n" in out

    code, out, err = run_main(main, "mine.yaml", "--set", "test")
    assert (code, err) == (0, "") and "0 of them complete\ndropout=0.1,seed=1: evaluating" in out
    assert "training" not in out and len(list(Path("runs").glob("sweeps/mine/*/eval/test.jsonl"))) == 2
    code, out, _ = run_main(main, "mine.yaml", "--status", "--set", "test")
    assert out.startswith("CELLS\n2 complete\n")

    for set_name in ("test", "valid"):  # reports of another step
        report = Path(f"runs/sweeps/mine/dropout=0.1,seed=1/eval/{set_name}.json")
        write_atomically(report, report.read_text().replace('"step": ', '"step": 9'))
        code, out, err = run_main(main, "mine.yaml", "--status", "--set", set_name)
        assert out.startswith("CELLS\n1 trained, 1 complete\n")

    for overrides, message in (
        ("model.d_ff: 16", "is a run of another config: model.d_ff: 32 → 16. Move it away"),
        ("decoding.beam_size: 7", "is a run of another config: decoding.beam_size: "),
        ("training.steps: 6", "is at step 10, beyond training.steps=6. Move it away"),
        ("decoding.batch_sentences: 7", ""),
    ):
        write_sweep(folder, f"training.eval_every: 5, {overrides}")
        code, out, err = run_main(main, "mine.yaml", "--status")
        assert (code, err.count("\n")) == ((2, 1) if message else (0, 0)) and message in err


def test_the_status_of_a_cell_at_which_another_process_works(folder, run_main):
    cell = load_sweep(folder / "mine.yaml").cells[0]
    with lock_run(cell.run_dir):
        line = {"step": 4, "kind": "train", "minutes_left": 2.6}
        (cell.run_dir / "metrics.jsonl").write_text(json.dumps(line) + "\n")
        code, out, _ = run_main(main, "mine.yaml", "--status")
    assert code == 0 and out.startswith("CELLS\n1 in use elsewhere, 1 waiting\n")
    assert out.splitlines()[3].split() == [cell.name, "in", "use", "elsewhere", "4", "/", "10", "3"]


def running(folder, script, **options):
    """Jobs of which one is running: a shell with this script, in place of a program."""
    sweep, share = load_sweep(folder / "mine.yaml"), shares(None)[0]
    cell, work = sweep.cells[0], Jobs(sweep, "valid", [], {}, report=lambda cell, state: None, **options)
    cell.output.parent.mkdir(parents=True)
    with open(cell.output, "wb") as file:
        work.running.append(Job(cell, share, "training", launch(["sh", "-c", script], share, file)))
    return work, work.running[0]


@pytest.mark.parametrize(
    ("script", "word", "reason"),
    [
        ("exit 0", "waiting", None),
        ("exit 143", "waiting", None),  # told to stop, by somebody else
        ("echo error: no room; exit 2", "failed", "error: no room"),
        ("kill -9 $$", "failed", "killed by SIGKILL"),
        ("exit 134", "failed", "no output"),
    ],
)
def test_how_a_cell_ended(folder, script, word, reason):
    work, job = running(folder, script)
    job.process.wait()
    work.end(job)
    assert work.states[job.cell.name].word == word and work.free == [job.share]
    assert work.failures == ({job.cell.name: reason} if reason else {})


def test_a_job_that_started_while_a_signal_arrived_gets_it_once(folder):
    work, job = running(folder, COUNTING, signals=[signal.SIGTERM])
    wait_for(lambda: b"ready" in job.cell.output.read_bytes())
    work.pass_signals_on()
    wait_for(lambda: b"TERM" in job.cell.output.read_bytes())
    work.pass_signals_on()
    Path("end").touch()
    job.process.wait(timeout=60)
    assert job.cell.output.read_bytes() == b"ready\nTERM\n"


@pytest.mark.slow
def test_a_sweep_with_a_cell_that_is_not_complete_ends_with_2(folder, run_main):
    """Here because each start trains for a moment only."""
    write_sweep(folder, "training.minutes: 1e-9")
    code, out, err = run_main(main, "mine.yaml", "--cell", "0")
    assert (code, err) == (2, "error: 1 of 1 cells are not complete; the same command goes on\n")
    assert "interrupted at step " in out


def test_mistakes(folder, refuses, run_main):
    refuses(main, "there is no config file none.yaml", "none.yaml")
    refuses(main, "0 must be a whole number from 1", "mine.yaml", "--jobs", "0")
    refuses(main, "--cell must be from 0 to 1, not 2", "mine.yaml", "--cell", "2")
    Path("runs").write_text("")
    code, _, err = run_main(main, "mine.yaml")
    assert (code, err.count("\n")) == (2, 1) and "cannot write runs/sweeps/mine" in err


def test_the_array_job_trains_its_cell_and_is_queued_again_when_it_is_stopped(folder):
    """The script, run by bash with a stand-in for Python: told to stop, it ends as training does, and is requeued."""
    for name, text in (("python", STAND_IN), ("scontrol", "#!/bin/sh\necho $* > requeued\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    variables = {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_JOB_ID": "77", "PATH": f"{folder}:{os.environ['PATH']}"}
    process = subprocess.Popen(["bash", ROOT / "scripts/sweep.sbatch", "mine.yaml"], env=os.environ | variables)
    wait_for(lambda: Path("started").exists() and Path("started").read_text())
    assert Path("started").read_text().split()[1:] == ["mine.yaml", "--cell", "1"]
    process.terminate()
    assert process.wait(timeout=60) == 143
    assert Path("requeued").read_text() == "requeue 77_1\n"
