"""Compiling a function before its first call, and telling of a second time, which a loop of equal steps never needs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"  # also where a kept program was loaded instead


def compile_ahead(function: Callable[..., object], *arguments: object) -> None:
    """Compile a jitted function for arguments, or for shapes, types and places of them, before its first call."""
    assert isinstance(function, jax.stages.Wrapped)
    function.lower(*arguments).compile()


@contextmanager
def recompilations_told(function: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Call ``tell`` with a line on every compilation of a jitted function, by its name, but the first in here."""
    compilations = 0

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        nonlocal compilations
        if event == COMPILED and kwargs.get("fun_name") == f"jit({function})":
            compilations += 1
            if compilations > 1:
                tell(f"{function} was compiled again, in {duration_secs:.1f} s: its inputs are not as they were")

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
