"""Compile before the first call, or in a background thread, and report any later compilation: equal steps need none."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import jax

COMPILED = "/jax/core/compile/backend_compile_duration"  # also recorded when a cached program is loaded
Result = TypeVar("Result")


def compile_ahead(function: Callable[..., object], *arguments: object) -> None:
    """Compile a jitted function for these arguments, or for their shapes, dtypes and shardings."""
    assert isinstance(function, jax.stages.Wrapped)
    function.lower(*arguments).compile()


@contextmanager
def report_compilations(function: str, report: Callable[[str], None]) -> Iterator[None]:
    """Call ``report`` with a line whenever the jitted function of this name is compiled inside."""

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == COMPILED and kwargs.get("fun_name") == f"jit({function})":
            report(f"{function} was compiled again in {duration_secs:.1f} s because its inputs changed")

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def in_background(function: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Call the function in a thread; with several processes, end it first: joint work must come in the same order."""
    executor = ThreadPoolExecutor(1)
    result = executor.submit(function, *arguments)
    executor.shutdown(wait=False)
    if jax.process_count() > 1:
        wait([result])
    return result
