"""Batches built ahead of the training step."""

import itertools
import queue
import threading
from collections.abc import Generator

from data.batches.packing import Batch
from data.batches.stream import BatchStream


def prefetch(
    stream: BatchStream, first_step: int, depth: int, rows: slice = slice(None)
) -> Generator[Batch, None, None]:
    """The batches from ``first_step`` on, or ``rows`` of each; a thread builds up to ``depth`` of them ahead.

    The thread's errors are raised here.
    """
    ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=depth)
    is_closed = threading.Event()

    def hand_over(item: Batch | BaseException) -> None:
        while not is_closed.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                pass

    def build() -> None:
        try:
            for step in itertools.count(first_step):
                if is_closed.is_set():
                    return
                hand_over(stream.batch(step, rows))
        except BaseException as error:
            hand_over(error)

    thread = threading.Thread(target=build, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_closed.set()
        thread.join()
