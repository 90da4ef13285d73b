"""Signals that end a training: Ctrl-C, SIGTERM (schedulers, preemption) and SIGHUP (a lost terminal).

During a step they are recorded, and the loop ends the step, saves and stops. Elsewhere there is nothing to save, and
they end the program at once. A second signal always kills the process.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
Handler = Callable[[int, FrameType | None], object] | signal.Handlers


class Interrupted(KeyboardInterrupt):
    """Signal ``number`` arrived where the program can stop at once."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class StopRequest:
    """``received`` is the number of the signal that arrived, or 0."""

    received = 0

    def record(self, number: int, frame: FrameType | None = None) -> None:
        """Handle a signal: record it, and restore the default effect for the next one."""
        self.received = number
        for other in SIGNALS:
            signal.signal(other, signal.SIG_DFL)
        message = f"\n{_name(number)}: finishing the step and saving; again: quit at once\n"
        with contextlib.suppress(OSError):
            os.write(2, message.encode())  # print would fail if the signal arrived during a print

    @contextlib.contextmanager
    def immediate(self) -> Iterator[None]:
        """Inside, where everything is saved, a signal raises Interrupted, as does one already recorded."""
        with handle_signals(interrupt):
            if self.received:
                raise Interrupted(self.received)
            yield


@contextlib.contextmanager
def defer_signals() -> Iterator[StopRequest]:
    """Inside, the first signal is only recorded."""
    stop = StopRequest()
    with handle_signals(stop.record):
        yield stop


@contextlib.contextmanager
def exit_when_interrupted(hint: str) -> Iterator[None]:
    """Inside, a signal ends the program with ``hint`` and the exit code of shells: 128 plus the signal's number."""
    try:
        with handle_signals(interrupt):
            yield
    except Interrupted as interruption:
        print(f"\n{_name(interruption.number)}: {hint}", file=sys.stderr)
        sys.exit(128 + interruption.number)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextlib.contextmanager
def handle_signals(handler: Handler) -> Iterator[None]:
    """Inside, ``handler`` gets the signals, except those that were ignored, such as SIGHUP under nohup."""
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if earlier[number] is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, earlier[number])


def explain_pause(number: int, seconds: float, limit: float) -> str:
    """Why a training paused: signal ``number``, its time limit, or another process of the run."""
    if number:
        return signal.Signals(number).name
    return f"{seconds / 60:.3g} minutes" if 0 < limit < seconds else "a signal to another process"


def _name(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else signal.Signals(number).name
