"""Batches built ahead of the training step."""

import itertools
from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

from data.batches.packing import Batch
from data.batches.stream import BatchStream


def prefetch(
    stream: BatchStream, first_step: int, depth: int, rows: slice = slice(None)
) -> Generator[Batch, None, None]:
    """The batches from ``first_step`` on, or ``rows`` of each; a thread builds up to ``depth`` of them ahead.

    The thread's errors are raised here.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
    steps = itertools.count(first_step)
    ready = deque(thread.submit(stream.batch, next(steps), rows) for _ in range(depth))
    try:
        while True:
            batch = ready.popleft().result()
            ready.append(thread.submit(stream.batch, next(steps), rows))
            yield batch
    finally:
        thread.shutdown(cancel_futures=True)
