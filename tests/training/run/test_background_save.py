"""Saves in the background: training goes on, nothing of it reaches the checkpoint, and failures are told."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from dataclasses import replace

import jax
import pytest

from common.errors import UserError
from tests.drawn import drawn_state
from tests.processes import run_code
from tests.training.run.test_checkpoint import MODEL, TRAINING, VOCAB, assert_same, make_state
from training.progress import Progress
from training.run import manifest, write_trees
from training.run.background_save import Saves
from training.run.checkpoint import read_notes, restore
from training.run.retention import good_steps

LIMIT = 60  # seconds: what takes longer hangs


@pytest.fixture
def held(reached, monkeypatch):
    """Saves stay in the background, before their manifest, until this event is set."""
    released, write_manifest = threading.Event(), manifest.write_manifest

    def hold(*arguments):
        reached.set()
        assert released.wait(LIMIT)
        write_manifest(*arguments)

    monkeypatch.setattr(write_trees, "write_manifest", hold)
    yield released
    released.set()


@pytest.fixture
def reached():
    """Set when a save is about to have its manifest."""
    return threading.Event()


def fail(monkeypatch):
    fault = OSError(28, "No space left")
    monkeypatch.setattr(write_trees, "flush_folder", lambda directory: (_ for _ in ()).throw(fault))


def check_for_long(saves):
    for _ in range(100 * LIMIT):
        saves.check()
        time.sleep(0.01)


def save_in_a_training(run_dir, error):
    """Begin a save, and end the training with this error or without one."""
    with Saves(run_dir, keep=1) as saves:
        saves.start(make_state(2), Progress())
        if error:
            raise error


def with_a_checkpoint_at_2(run_dir, held):
    """Saves that have written step 2 and will be held at the next."""
    saves = Saves(run_dir, keep=1)
    held.set()
    saves.start(make_state(2), Progress())
    saves.wait()
    held.clear()
    return saves


def restored(run_dir, step):
    return restore(run_dir, step, drawn_state(MODEL, TRAINING, VOCAB))


def test_training_goes_on_and_reaches_neither_the_checkpoint_nor_its_notes(tmp_path, held):
    before = jax.device_get(make_state(2))
    state, progress = make_state(2), Progress(best_step=1)
    train_on = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 1, state), donate_argnums=0)
    saves = Saves(tmp_path, keep=1)
    saves.start(state, progress)
    for _ in range(3):
        state = train_on(state)
    progress = replace(progress, best_step=9)
    saves.check()
    assert good_steps(tmp_path) == []
    held.set()
    saves.wait()
    assert_same(restored(tmp_path, 2), before)
    assert read_notes(tmp_path, 2)["best_step"] == 1
    assert int(state.step) == 5


def test_earlier_checkpoints_go_when_the_save_is_complete_and_not_before(tmp_path, held, reached):
    saves = with_a_checkpoint_at_2(tmp_path, held)
    reached.clear()
    saves.start(make_state(4), Progress())
    assert reached.wait(LIMIT)
    assert good_steps(tmp_path) == [2]
    held.set()
    saves.wait()
    assert good_steps(tmp_path) == [4]


def test_a_save_waits_for_the_one_before_it(tmp_path, held):
    saves = Saves(tmp_path, keep=2)
    saves.start(make_state(2), Progress())
    with ThreadPoolExecutor(1) as thread:
        second = thread.submit(saves.start, make_state(4), Progress())
        with pytest.raises(TimeoutError):
            second.result(0.5)
        assert not (tmp_path / "checkpoints" / ".4").exists()
        held.set()
        second.result(LIMIT)
    saves.wait()
    assert good_steps(tmp_path) == [2, 4]


def test_a_save_that_fails_after_training_went_on_is_told_and_costs_no_earlier_one(tmp_path, held, monkeypatch):
    saves = with_a_checkpoint_at_2(tmp_path, held)
    fail(monkeypatch)
    saves.start(make_state(4), Progress())
    saves.check()
    held.set()
    with pytest.raises(UserError, match=r"checkpoints/4 \(earlier ones are as they were\): No space left"):
        check_for_long(saves)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["2"]
    assert_same(restored(tmp_path, 2), make_state(2))


def test_an_error_of_the_training_leaves_the_save_that_goes_on_complete(tmp_path, held):
    threading.Timer(0.2, held.set).start()
    with pytest.raises(ValueError, match="of the training"):
        save_in_a_training(tmp_path, ValueError("of the training"))
    assert good_steps(tmp_path) == [2]
    assert not list((tmp_path / "checkpoints").glob(".*"))


def test_of_two_errors_the_first_is_told(tmp_path, held, monkeypatch):
    fail(monkeypatch)
    held.set()
    with pytest.raises(ValueError, match="of the training"):
        save_in_a_training(tmp_path, ValueError("of the training"))
    with pytest.raises(UserError, match="No space left"):
        save_in_a_training(tmp_path, None)
    assert good_steps(tmp_path) == []


# As Orbax, when a save fails: it closes the loop to which TensorStore's threads still report.
CLOSED_TOO_EARLY = """
import asyncio, sys, time
from pathlib import Path
import numpy as np, tensorstore
from training.run import write_trees
folder = Path(sys.argv[1])
write_trees.begin_writing(folder / "1", {"params": {"x": np.zeros(1)}}, 1, {})()
store = {"driver": "zarr", "kvstore": {"driver": "file", "path": str(folder / "x")}}
async def write():
    array = await tensorstore.open(store, dtype="float32", shape=[4096, 4096], create=True)
    async def wait():
        await array.write(np.ones((4096, 4096), "float32"))
    waiting.append(asyncio.ensure_future(wait()))
    await asyncio.sleep(0)
waiting, loop = [], asyncio.new_event_loop()
loop.run_until_complete(write())
loop.close()
print("closed", flush=True)
time.sleep(2)
"""


@pytest.mark.slow
def test_threads_that_go_on_after_a_failed_save_print_no_traceback(tmp_path):
    done = run_code(CLOSED_TOO_EARLY, tmp_path)
    assert (done.returncode, done.stdout) == (0, "closed\n")
    assert "Event loop is closed" not in done.stderr
