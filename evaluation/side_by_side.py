"""Calls side by side in threads: a search alone leaves cores idle between its products."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

from attention import current_device

MOST = 4  # calls at once, of which each needs memory of its own

Task = TypeVar("Task")
Result = TypeVar("Result")


def workers() -> int:
    """How many calls run at once: one for each core of a CPU, and one on anything else.

    Several devices compute one call together, and have to get their calls in one order.
    """
    if current_device().platform != "cpu" or jax.sharding.get_mesh().size > 1 or jax.process_count() > 1:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST)


def side_by_side(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results of ``function``, in the order of the tasks. If the caller stops early, no further task begins."""
    if (count := workers()) == 1:
        yield from map(function, tasks)
        return
    mesh = jax.sharding.get_mesh()  # of this thread alone

    def call(task: Task) -> Result:
        with jax.set_mesh(mesh):
            return function(task)

    pool = ThreadPoolExecutor(count, thread_name_prefix="search")
    try:
        yield from pool.map(call, tasks)
    finally:
        pool.shutdown(cancel_futures=True)
