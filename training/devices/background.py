"""Work in a background thread, such as compiling the initial state while the corpus is prepared."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import jax

Result = TypeVar("Result")


def in_background(function: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Call the function in a thread of its own. ``result()`` waits for the result and raises its exception.

    With several processes the call ends before this returns: joint work must come in the same order in all of them.
    """
    executor = ThreadPoolExecutor(1)
    result = executor.submit(function, *arguments)
    executor.shutdown(wait=False)
    if jax.process_count() > 1:
        wait([result])
    return result
