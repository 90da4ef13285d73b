"""The wall time and speed of a run, and when it pauses: after a signal, at its time limit, or with another process."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

import jax

from common.signals import SIGNALS, Interrupted, describe_signal, handle_signals, interrupt
from training.devices.distributed import any_process

MOMENT = 0.3  # seconds


class Clock:
    """Measures a run's time over all sessions, the time of this session, and the speed of training itself."""

    def __init__(self, step: int, earlier_seconds: float) -> None:
        self._earlier_seconds = earlier_seconds
        self._session_start = self._last_save = time.monotonic()
        self.start_window(step)

    def start_window(self, step: int) -> None:
        self._window_step, self._window_start = step, time.monotonic()

    @property
    def session_seconds(self) -> float:
        return time.monotonic() - self._session_start

    @property
    def run_seconds(self) -> float:
        return self._earlier_seconds + self.session_seconds

    @property
    def seconds_since_save(self) -> float:
        return time.monotonic() - self._last_save

    def saved(self) -> None:
        """Note that the run has just been saved."""
        self._last_save = time.monotonic()

    @contextlib.contextmanager
    def not_training(self) -> Iterator[None]:
        """Exclude the time of the block, such as an evaluation, from the speed."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._window_start += time.monotonic() - start

    def steps_per_second(self, step: int) -> float:
        """The speed since the last call, which starts the next window."""
        speed = (step - self._window_step) / (time.monotonic() - self._window_start)
        self.start_window(step)
        return speed


class Pause:
    """Decides after each step whether to save, and whether to stop.

    ``minutes`` limits this session, ``save_minutes`` the time between saves; 0 means no limit. Several processes agree
    every ``sync_every`` steps, which waits for the step to finish.
    """

    signal = 0  # the number of the signal that arrived

    def __init__(self, clock: Clock, minutes: float, save_minutes: float, sync_every: int) -> None:
        self._clock, self._limit, self._save_limit = clock, 60 * minutes, 60 * save_minutes
        self._sync_every = sync_every

    def record(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: record it for ``is_due``, and after a moment let the next one kill the process.

        The moment is needed because schedulers and ``timeout`` signal a process and its group at the same time.
        """
        self.signal = number
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        time.sleep(MOMENT)
        for other in SIGNALS:
            signal.signal(other, signal.SIG_DFL)
        message = f"\n{describe_signal(number)}: finishing the step and saving; again: quit at once\n"
        with contextlib.suppress(OSError):
            os.write(2, message.encode())  # print would fail if the signal arrived during a print

    def is_due(self, step: int) -> bool:
        """Whether to stop after this step."""
        return self._agree(step, bool(self.signal) or 0 < self._limit < self._clock.session_seconds)

    def save_is_due(self, step: int) -> bool:
        """Whether the last save was too long ago, by the clock of any process."""
        return self._save_limit > 0 and self._agree(step, self._save_limit < self._clock.seconds_since_save)

    def _agree(self, step: int, is_due: bool) -> bool:
        if jax.process_count() > 1 and step % self._sync_every:
            return False
        return any_process(is_due)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """In the block, with everything saved, a signal ends the program at once, even one recorded earlier."""
        with handle_signals(interrupt):
            if self.signal:
                raise Interrupted(self.signal)
            yield

    def __str__(self) -> str:
        """The reason for the pause."""
        seconds = self._clock.session_seconds
        if self.signal:
            return signal.Signals(self.signal).name
        return f"{seconds / 60:.3g} minutes" if 0 < self._limit < seconds else "a signal to another process"
