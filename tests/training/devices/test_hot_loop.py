"""What the program waits for between lines of metrics: never for a step without a later one under way."""

import json

import pytest

from tests.processes import run_code

PROGRAM = """
import json, sys
from collections import Counter
from jax._src.array import ArrayImpl
import train
from configs.load import load_config
from training.progress import DivergenceCheck

place, taken, fetches, lags = ["elsewhere"], [0], Counter(), Counter()

def counted(fetch):
    return lambda self, *arguments: (fetches.update(place), fetch(self, *arguments))[1]

def within(name, function):
    def call(*arguments):
        before, place[0] = place[0], name
        try:
            return function(*arguments)
        finally:
            place[0] = before
    return call

def add(self, step, reading, original=DivergenceCheck.add):
    taken[0] = step
    within("add", original)(self, step, reading)

def check(self, step, reading, original=DivergenceCheck._check):
    lags.update([f"{place[0]} {taken[0] - step}"])
    original(self, step, reading)

ArrayImpl._value = property(counted(ArrayImpl._value.fget))
ArrayImpl.__array__ = counted(ArrayImpl.__array__)
ArrayImpl.block_until_ready = counted(ArrayImpl.block_until_ready)
DivergenceCheck.add, DivergenceCheck._check = add, check
DivergenceCheck.wait = within("wait", DivergenceCheck.wait)
train.log, train.save, train.validate = (within(f.__name__, f) for f in (train.log, train.save, train.validate))
train.take_steps = within("loop", train.take_steps)
train.train(load_config(sys.argv[1], sys.argv[2:]))
print(json.dumps([fetches, lags]))
"""


@pytest.mark.slow
def test_between_lines_of_metrics_only_readings_of_two_steps_before_are_fetched(small_experiment, tmp_path):
    """24 steps on two simulated devices, six to a line of metrics, saved and evaluated at the end."""
    settings = ["training.steps=24", "training.log_every=6", "training.eval_every=24", "decoding.beam_size=1"]
    two_devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = run_code(PROGRAM, small_experiment, f"run_dir={tmp_path}", "mesh.data=2", *settings, **two_devices)
    assert done.returncode == 0, done.stderr
    fetches, lags = json.loads(done.stdout.splitlines()[-1])
    assert "2 × cpu (data 2)" in done.stdout
    assert lags == {"add 2": 16, "wait 1": 4, "wait 0": 4}  # of every line's six, two are fetched after its sums
    assert fetches.pop("loop") == 1  # the step at which the loop begins
    assert fetches.pop("add") == 16 and fetches.pop("wait") == 8
    assert fetches.keys() <= {"log", "save", "validate", "elsewhere"} and fetches["log"] > 0
