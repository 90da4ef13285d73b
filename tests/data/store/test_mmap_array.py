import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from common.errors import UserError
from data.store.mmap_array import GrowingArray, move_to_disk, scratch_folder


def test_an_array_is_its_blocks_and_cannot_be_written():
    growing = GrowingArray(np.int32)
    for block in ([1, 2], [], [3]):
        growing.append(np.array(block, dtype=np.int64))
    array = growing.finish()
    assert array.tolist() == [1, 2, 3] and array.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 4
    assert move_to_disk(np.zeros(0)).shape == GrowingArray(np.int8).finish().shape == (0,)
    every_other = np.arange(10)[::2]
    assert move_to_disk(every_other).tolist() == [0, 2, 4, 6, 8]


def test_nothing_has_a_name_even_after_a_kill(tmp_path):
    code = (
        "import os, signal, numpy as np; from data.store.mmap_array import *; array = move_to_disk(np.ones(9999));"
        "print(scratch_folder(), os.listdir(scratch_folder()), array.sum(), flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"{tmp_path} [] 9999.0\n", -signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_the_one_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert scratch_folder() == tmp_path
    monkeypatch.delenv("TMPDIR")
    assert scratch_folder() in (Path("/var/tmp"), tmp_path)


def test_a_full_disk_is_told():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    growing = GrowingArray(np.int64)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(UserError, match=f"cannot write {scratch_folder()}: "):
            growing.append(np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
