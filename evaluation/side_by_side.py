"""Run calls in parallel threads: a single search leaves cores idle between its matrix products."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from attention.kernels.request import current_device
from common.processor import count_cores

MOST = 4  # calls at once; each needs memory of its own

Task = TypeVar("Task")
Result = TypeVar("Result")


def workers() -> int:
    """How many calls to run at once: one per core, up to ``MOST``, on a CPU, and one on any other device."""
    if current_device().platform != "cpu":
        return 1
    return min(count_cores(), MOST)


def side_by_side(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results of ``function``, in the order of the tasks. If the caller stops early, no further task starts."""
    if (count := workers()) == 1:
        yield from map(function, tasks)
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="search")
    try:
        yield from pool.map(function, tasks)
    finally:
        pool.shutdown(cancel_futures=True)
