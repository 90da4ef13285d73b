"""One process per run directory; the lock ends with its holder, and a lost folder is noticed."""

import json
import os
import signal
import subprocess
import sys

import pytest

from common.errors import UserError
from training.run.lock import check_not_lost, is_in_use, lock_run

HOLD = """
import sys, time
from pathlib import Path
from training.run.lock import lock_run
with lock_run(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the run directory."""
    run_dir = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run_dir)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    yield process, run_dir
    process.kill()
    process.wait()


def test_a_second_process_is_refused_and_told_which_holds_the_run_and_a_dead_one_holds_nothing(holder):
    process, run_dir = holder
    with pytest.raises(UserError, match=rf"run is in use by process {process.pid} on .* since .*run_dir=FOLDER"):
        lock_run(run_dir).__enter__()
    assert json.loads((run_dir / "process.json").read_text())["pid"] == process.pid  # and nothing was overwritten
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (run_dir / ".lock").exists()
    with lock_run(run_dir):
        assert json.loads((run_dir / "process.json").read_text())["pid"] == os.getpid()


def test_a_holder_that_cannot_be_read_is_another_process(tmp_path):
    with lock_run(tmp_path):
        (tmp_path / "process.json").write_text("[")
        with pytest.raises(UserError, match="is in use by another process"):
            lock_run(tmp_path).__enter__()


def test_a_new_directory_in_which_nothing_was_written_goes_again(tmp_path):
    def fail(run_dir, *files):
        with lock_run(run_dir):
            for name in files:
                (run_dir / name).touch()
            raise UserError("no such corpus")

    (tmp_path / "empty").mkdir()
    for name, files in (("new", []), ("written", ["config.yaml"]), ("empty", [])):
        with pytest.raises(UserError, match="no such corpus"):
            fail(tmp_path / name, *files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "written"]
    assert (tmp_path / "written" / "config.yaml").exists()


def test_a_run_whose_folder_is_moved_away_is_told_so_whatever_failed_for_it(tmp_path):
    run_dir = tmp_path / "run"

    def lose():
        with lock_run(run_dir):
            check_not_lost(run_dir)
            run_dir.rename(tmp_path / "elsewhere")
            raise UserError("cannot write run/metrics.jsonl")

    with pytest.raises(UserError, match="no longer the folder in which this run started"):
        lose()
    with pytest.raises(UserError, match="no longer the folder"):
        check_not_lost(tmp_path / "nothing")
    assert not run_dir.exists()  # and no other is begun in its place


def test_a_lock_that_cannot_be_opened_tells_nothing(tmp_path):
    (tmp_path / ".lock").mkdir()
    assert not is_in_use(tmp_path)
