"""A profile of a few training steps, for XProf, TensorBoard or Perfetto: what devices do, and when they wait."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import jax

from data.batches.packing import Batch
from training.state import TrainState
from training.step import StepReport, TrainStep

STEP = "train_step"


@contextmanager
def profiled(train_step: TrainStep, steps: Sequence[int], taken: int, folder: Path) -> Iterator[TrainStep]:
    """``train_step`` that also records the updates from ``steps[0]`` to ``steps[1]`` in ``folder``, if given ``steps``.

    ``taken`` updates have been taken before the first call. A recording still running at the end is also written.
    """
    if not steps or steps[1] <= taken:
        yield train_step
        return
    numbers, first, last = count(taken + 1), max(steps[0], taken + 1), steps[1]
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # tracing Python would slow the steps down

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, StepReport]:
        number = next(numbers)
        if number == first:
            jax.block_until_ready(state)
            recording.enter_context(jax.profiler.trace(folder, profiler_options=options))
        with jax.profiler.StepTraceAnnotation(STEP, step_num=number):
            state, report = train_step(state, batch)
        if number == last:
            jax.block_until_ready(state)
            recording.close()
        return state, report

    with ExitStack() as recording:
        yield step
