"""A profile of a few training steps by JAX's profiler: what the devices did when, and when they waited."""

from itertools import count
from pathlib import Path

import jax

from data.batches.packing import Batch
from training.state import TrainState
from training.step import Reading, TrainStep

WARM_UP = 20  # steps before the profile, in which memory settles and the input pipeline gets ahead
STEP = "train_step"


def profiled(train_step: TrainStep, steps: int, folder: Path) -> TrainStep:
    """Return ``train_step`` that records ``steps`` calls after the first ``WARM_UP`` in ``folder``.

    TensorBoard and xprof open the folder, and scripts/show_profile.py sums it up.
    """
    calls = count(1)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # which would slow the steps down

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, Reading]:
        call = next(calls)
        if call == WARM_UP + 1:
            jax.block_until_ready(state)
            jax.profiler.start_trace(folder, profiler_options=options)
        with jax.profiler.StepTraceAnnotation(STEP, step_num=call):
            state, reading = train_step(state, batch)
        if call == WARM_UP + steps:
            jax.block_until_ready(state)
            jax.profiler.stop_trace()
        return state, reading

    return step
