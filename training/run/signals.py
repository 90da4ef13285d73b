"""Signals that ask a training to end: Ctrl-C, SIGTERM (schedulers, preemption) and SIGHUP (a lost terminal).

While a step runs they are noted, and the loop ends the step, saves and stops; elsewhere there is nothing to save, and
they end the program at once. A second signal kills the process at once, whatever it does.
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
    """A signal came where the program can stop at once; ``number`` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop:
    """``asked`` is the number of the signal that came while steps ran, or 0."""

    asked = 0

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """Remember the signal; the next one has its default effect."""
        self.asked = number
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        told = f"\n{name_of(number)}: finishing the step and saving; again: quit at once\n"
        with contextlib.suppress(OSError):
            os.write(2, told.encode())  # print, called in the middle of a print, would fail

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, where all is saved, a signal raises Interrupted; also one that came just before."""
        with handled_by(interrupt):
            if self.asked:
                raise Interrupted(self.asked)
            yield


@contextlib.contextmanager
def noted() -> Iterator[Stop]:
    """Inside, the first signal is only noted."""
    stop = Stop()
    with handled_by(stop.note):
        yield stop


@contextlib.contextmanager
def exit_when_interrupted(told: str) -> Iterator[None]:
    """Inside, a signal ends the program with a line and the exit code that shells give: 128 and the signal's number."""
    try:
        with handled_by(interrupt):
            yield
    except Interrupted as interruption:
        print(f"\n{name_of(interruption.number)}: {told}", file=sys.stderr)
        sys.exit(128 + interruption.number)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextlib.contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    """Inside, ``handler`` gets the signals; one that is ignored, as nohup does with SIGHUP, stays ignored."""
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number in SIGNALS if earlier[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, earlier[number])


def why_paused(asked: int, seconds: float, limit: float) -> str:
    """What a training stops for: a signal, its limit of time, or else another of its processes, which has either."""
    if asked:
        return signal.Signals(asked).name
    return f"{seconds / 60:.3g} minutes" if 0 < limit < seconds else "a signal to another process"


def name_of(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else signal.Signals(number).name
