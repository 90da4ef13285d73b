"""The first signal is deferred while steps run, and ends the program elsewhere; the second one kills."""

import os
import signal
from contextlib import contextmanager

import pytest

from common.signals import Interrupted, exit_when_interrupted, handle_signals
from tests.processes import run_code
from training.run.pause import Clock, Pause


@pytest.fixture(autouse=True)
def usual_handlers():
    """A shell that starts the tests in the background has them ignore SIGINT."""
    earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler)


@contextmanager
def recording():
    pause = Pause(Clock(0, 0.0), minutes=0.0, save_minutes=0.0, sync_every=1)
    with handle_signals(pause.record):
        yield pause


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_among_steps_is_noted_and_the_next_one_has_its_default_effect(number, capfd):
    before = signal.getsignal(number)
    with recording() as pause:
        assert pause.signal == 0
        send(number)
        assert pause.signal == number
        assert all(signal.getsignal(each) is signal.SIG_DFL for each in (signal.SIGINT, signal.SIGTERM))
    assert signal.getsignal(number) is before
    assert "finishing the step and saving; again: quit at once" in capfd.readouterr().err


def test_signals_that_come_together_are_one():
    """As timeout and schedulers send them, to a process and to its group."""
    code = """
import os, signal, time
from common.signals import handle_signals
from training.run.pause import Clock, Pause
time.sleep = lambda seconds: os.kill(os.getpid(), signal.SIGTERM)
pause = Pause(Clock(0, 0.0), 0.0, 0.0, 1)
with handle_signals(pause.record):
    os.kill(os.getpid(), signal.SIGTERM)
print(pause.signal)
"""
    done = run_code(code)
    assert (done.returncode, done.stdout) == (0, "15\n")


def test_where_all_is_saved_a_signal_ends_at_once_also_one_that_came_just_before():
    with recording() as pause:
        with pytest.raises(Interrupted) as interruption, pause.interruptible():
            send(signal.SIGTERM)
        assert interruption.value.number == signal.SIGTERM
        assert pause.signal == 0
        send(signal.SIGTERM)  # among steps again
        assert pause.signal == signal.SIGTERM
        with pytest.raises(Interrupted), pause.interruptible():
            raise AssertionError("not reached")


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "SIGTERM")])
def test_before_the_first_step_it_exits_as_shells_do_with_a_line(number, name, capsys):
    with pytest.raises(SystemExit) as end, exit_when_interrupted("the same command continues"):
        send(number)
    assert end.value.code == 128 + number
    assert capsys.readouterr().err == f"\n{name}: the same command continues\n"


def test_a_signal_that_is_ignored_stays_ignored():
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with recording() as pause, pause.interruptible():
            send(signal.SIGHUP)
        assert pause.signal == 0
    finally:
        signal.signal(signal.SIGHUP, earlier)
