"""Signals that end a training run: Ctrl-C, SIGTERM (schedulers, preemption) and SIGHUP (a lost terminal).

During a step they are recorded (training/run/pause.py), and the loop finishes the step, saves and stops. Elsewhere
there is nothing to save, and they end the program at once. A second signal always kills the process.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupted(KeyboardInterrupt):
    """Raised when signal ``number`` arrives where the program can stop at once."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def exit_when_interrupted(hint: str) -> Iterator[None]:
    """In the block, a signal ends the program with ``hint`` and a shell's exit code: 128 plus the signal's number."""
    try:
        with handle_signals(interrupt):
            yield
    except Interrupted as interruption:
        print(f"\n{describe_signal(interruption.number)}: {hint}", file=sys.stderr)
        sys.exit(128 + interruption.number)


@contextlib.contextmanager
def exit_at_once() -> Iterator[None]:
    """In the block, ``sys.exit`` does not wait for compiling threads, as waiting after a signal led to segfaults."""
    try:
        yield
    except SystemExit as end:
        code = end.code or 0
        end_process(code if isinstance(code, int) else 1)


def end_process(code: int) -> NoReturn:
    for stream in (sys.stderr, sys.stdout):
        with contextlib.suppress(OSError, ValueError):  # it is not writable, or closed
            stream.flush()
    os._exit(code)


def interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(number)


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    """In the block, ``handler`` receives the signals, except ignored ones such as SIGHUP under nohup."""
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if earlier[number] is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, earlier[number])


def describe_signal(number: int) -> str:
    return "interrupted" if number == signal.SIGINT else signal.Signals(number).name
