"""Telling when a function is compiled a second time, which a loop of equal steps should never need."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"  # also where a kept program was loaded instead


@contextmanager
def recompilations_told(function: str, tell: Callable[[float], None]) -> Iterator[None]:
    """Call ``tell`` with the seconds of every compilation of a jitted function, by its name, but the first in here."""
    compilations = 0

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        nonlocal compilations
        if event == COMPILED and kwargs.get("fun_name") == f"jit({function})":
            compilations += 1
            if compilations > 1:
                tell(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
