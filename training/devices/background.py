"""What can be made beside something else, such as the first state while the corpus is prepared."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import jax

Result = TypeVar("Result")


def in_background(make: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Make it in a thread of its own; the result is waited for, or its exception raised, where it is asked for.

    With several processes it is made at once: what they do together must come in the same order in all of them.
    """
    thread = ThreadPoolExecutor(1)
    result = thread.submit(make, *arguments)
    thread.shutdown(wait=False)
    if jax.process_count() > 1:
        wait([result])
    return result
