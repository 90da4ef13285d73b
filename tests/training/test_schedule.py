"""What is due after each update, by tables written by hand."""

import pytest

from data.batches.stream import BatchStream
from training.config import TrainingConfig
from training.progress import Progress
from training.run.pause import Clock, Pause
from training.schedule import Schedule

never = BatchStream.__new__(BatchStream)  # asked for anything: steps decide


def letters(step, progress=None, *, save_seconds=0.0, signal=0, **settings):
    """L for a line of metrics, S for a save, E for an evaluation, P for a pause, and C where the run is complete."""
    progress = progress or Progress()
    schedule = Schedule(TrainingConfig(steps=10, log_every=2, eval_every=6, **settings), stream=never)
    pause = Pause(Clock(0, 0.0), minutes=0.0, save_minutes=save_seconds / 60, sync_every=1)
    pause.signal = signal
    due = (*schedule.at(step, progress, pause), schedule.is_complete(step, progress))
    return "".join(letter for letter, is_due in zip("LSEPC", due, strict=True) if is_due)


TABLES = {  # for the steps 1 to 10
    "by steps": ({}, "- L - L - LSE - L - LSEC"),
    "further saves": ({"save_every": 3}, "- L S L - LSE - L S LSEC"),
    "by the clock": ({"save_seconds": 1e-9}, "S LS S LS S LSE S LS S LSEC"),
    "after a signal": ({"signal": 15}, "SP LSP SP LSP SP LSEP SP LSP SP LSEPC"),
}


@pytest.mark.parametrize(("settings", "expected"), TABLES.values(), ids=TABLES)
def test_what_is_due_after_each_step(settings, expected):
    assert [letters(step, **settings) or "-" for step in range(1, 11)] == expected.split()


def test_what_was_evaluated_is_not_evaluated_again_and_step_0_never():
    assert letters(6, Progress(evaluated=6)) == "L" and letters(0).replace("L", "") == ""
    assert letters(10, Progress(evaluated=6)) == "LSEC" and letters(10, Progress(evaluated=10)) == "LC"


def test_too_many_evaluations_without_a_better_one_complete_the_run():
    found = [letters(7, Progress(stale=stale, evaluated=6), patience=3) for stale in (2, 3, 4)]
    assert found == ["", "C", "C"]
    assert letters(7, Progress(stale=9, evaluated=6), patience=0) == ""
