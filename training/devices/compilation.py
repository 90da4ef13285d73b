"""Compile before the first call, or in a background thread."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import jax

from data.batches.packing import Batch
from training.state import TrainState
from training.step import TrainStep

Result = TypeVar("Result")


def compile_ahead(train_step: TrainStep, state: TrainState, batch: Batch) -> TrainStep:
    """The step, compiled for these arguments or shapes: it rejects others by name and is never compiled again.

    With ``training.reproducible=any_mesh`` the step consists of several programs, which are compiled when called.
    """
    if isinstance(train_step, jax.stages.Wrapped):
        return train_step.lower(state, batch).compile()
    return train_step


def in_background(function: Callable[..., Result], *arguments: object) -> Future[Result]:
    """Call the function in a thread; with several processes, wait for it, as joint work must keep the same order."""
    executor = ThreadPoolExecutor(1)
    result = executor.submit(function, *arguments)
    executor.shutdown(wait=False)
    if jax.process_count() > 1:
        wait([result])
    return result
