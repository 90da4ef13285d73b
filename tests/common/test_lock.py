"""A lock tells a live holder from a dead one, also without the operating system's locks and on another machine."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from common.lock import lease_path

PROGRAM = """
import sys, time
from pathlib import Path
from filelock import Timeout
from common import lock
lock.LEASE_SECONDS, path = 1.0, Path(sys.argv[2])
if sys.argv[1] == "tell":
    print(lock.is_held(path), flush=True)
try:
    held = lock.acquire(path, wait=False)
    print(type(held).__name__, flush=True)
    time.sleep(60 if sys.argv[1] == "hold" else 0)
    held.release()
except Timeout:
    print("held by another")
"""


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / ".lock").touch()  # as flock leaves it, in a run that was copied from elsewhere
    return tmp_path / ".lock"


def told(what: str, path: Path, environment: dict[str, str]) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, what, str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("has_flock", [True, False])
def test_a_lock_ends_with_its_holder_however_that_ends(path, without_flock, has_flock):
    environment = dict(os.environ) if has_flock else without_flock
    kind = "UnixFileLock" if has_flock else "SoftFileLease"
    assert told("tell", path, environment) == ["False", kind]
    command = [sys.executable, "-c", PROGRAM, "hold", str(path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == f"{kind}\n"
        assert told("tell", path, environment) == ["True", "held by another"]
        holder.send_signal(signal.SIGKILL)
    assert lease_path(path).exists() != has_flock
    assert told("take", path, environment) == [kind]
    assert not lease_path(path).exists()


def test_a_holder_on_another_machine_is_dead_if_it_refreshes_nothing(path, without_flock):
    command = [sys.executable, "-c", PROGRAM, "hold", str(path)]
    with subprocess.Popen(command, env=without_flock, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline()
        record = lease_path(path).read_text()
        holder.kill()
    elsewhere = re.sub("host=.*", "host=another-machine", record)
    assert elsewhere != record
    lease_path(path).write_text(elsewhere)
    ended = threading.Event()

    def refresh() -> None:
        while not ended.wait(0.2):
            lease_path(path).touch()

    alive = threading.Thread(target=refresh)
    alive.start()
    try:
        assert told("take", path, without_flock) == ["held by another"]
    finally:
        ended.set()
        alive.join()
    assert told("take", path, without_flock) == ["SoftFileLease"]
