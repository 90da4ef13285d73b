"""A profile of a few training steps by JAX's profiler: what the devices did when, and when they waited."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import jax

from data.batches.packing import Batch
from training.state import TrainState
from training.step import StepReport, TrainStep

STEP = "train_step"


@contextmanager
def profiled(train_step: TrainStep, steps: Sequence[int], taken: int, folder: Path) -> Iterator[TrainStep]:
    """``train_step`` that records the updates from ``steps[0]`` to ``steps[1]`` in ``folder``, if there are ``steps``.

    Before the first call, ``taken`` updates were taken. A recording that has not ended at the end is written, too.
    XProf, TensorBoard and Perfetto show the folder.
    """
    if not steps:
        yield train_step
        return
    numbers, (first, last), recording = count(taken + 1), steps, False
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # which would slow the steps down

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, StepReport]:
        nonlocal recording
        number = next(numbers)
        if first <= number <= last and not recording:
            jax.block_until_ready(state)
            jax.profiler.start_trace(folder, profiler_options=options)
            recording = True
        with jax.profiler.StepTraceAnnotation(STEP, step_num=number):
            state, report = train_step(state, batch)
        if recording and number == last:
            jax.block_until_ready(state)
            jax.profiler.stop_trace()
            recording = False
        return state, report

    try:
        yield step
    finally:
        if recording:
            jax.profiler.stop_trace()
