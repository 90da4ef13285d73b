"""The wall time of a run, and its speed."""

import contextlib
import time
from collections.abc import Iterator


class Clock:
    """Measures a run's time over all its sessions, the time of this session, and the speed of training alone."""

    def __init__(self, step: int, earlier_seconds: float) -> None:
        self._earlier_seconds = earlier_seconds
        self._session_start = time.monotonic()
        self.start_window(step)

    def start_window(self, step: int) -> None:
        """Measure the speed from this step on."""
        self._window_step, self._window_start = step, time.monotonic()

    @property
    def session_seconds(self) -> float:
        """Seconds since this process began to train."""
        return time.monotonic() - self._session_start

    @property
    def run_seconds(self) -> float:
        """Seconds in all sessions of the run."""
        return self._earlier_seconds + self.session_seconds

    @contextlib.contextmanager
    def not_training(self) -> Iterator[None]:
        """Leave the time inside, such as that of an evaluation, out of the speed."""
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
