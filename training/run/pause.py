"""When a training pauses: after a signal, at its time limit, or because another of its processes pauses."""

import contextlib
from collections.abc import Iterator

import jax

from training.devices.distributed import any_process
from training.run.clock import Clock
from training.run.signals import StopRequest, defer_signals, explain_pause


class Pause:
    """Decides after each step whether to save and stop. ``minutes`` limits this session; 0 means no limit."""

    def __init__(self, stop: StopRequest, clock: Clock, minutes: float, sync_every: int) -> None:
        self._stop, self._clock, self._limit, self._sync_every = stop, clock, 60 * minutes, sync_every

    @property
    def signal(self) -> int:
        """The number of the signal that was received, or 0."""
        return self._stop.received

    def is_due(self, step: int) -> bool:
        """Whether to stop after this step. Several processes agree on it, which waits for the step, at intervals."""
        if jax.process_count() > 1 and step % self._sync_every:
            return False
        return any_process(bool(self._stop.received) or 0 < self._limit < self._clock.session_seconds)

    def interruptible(self) -> contextlib.AbstractContextManager[None]:
        """Inside, where everything is saved, a signal ends the program at once."""
        return self._stop.immediate()

    def __str__(self) -> str:
        """The reason for the pause."""
        return explain_pause(self._stop.received, self._clock.session_seconds, self._limit)


@contextlib.contextmanager
def pausing(clock: Clock, minutes: float, sync_every: int) -> Iterator[Pause]:
    """Inside, the first signal is only noted, for ``Pause.is_due``; a second one kills the process."""
    with defer_signals() as stop:
        yield Pause(stop, clock, minutes, sync_every)
