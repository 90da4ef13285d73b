"""``training.profile`` records the steps that it names, of those that a session takes."""

import jax
import pytest
from jax.profiler import ProfileData

from benchmarks.training import PuenteSteps, Task
from tests.benchmarks.small import STEP as SIZES
from tests.benchmarks.small import TRAINING
from training.devices.profile import STEP, profiled


@pytest.fixture(scope="module")
def program():
    """Training steps that are compiled already."""
    return PuenteSteps(Task(SIZES, TRAINING))


def steps_in(folder):
    """The training steps in the profile in ``folder``."""
    [path] = folder.glob("plugins/profile/*/*.xplane.pb")
    lines = [line for plane in ProfileData.from_file(str(path)).planes for line in plane.lines]
    return sum(event.name == STEP for line in lines for event in line.events)


def take_steps(program, count, recorded, taken, folder):
    """Take steps after those ``taken`` by a run, and record some; says after which of them there is a profile."""
    unprofiled, found = program.train_step, []
    with profiled(unprofiled, recorded, taken, folder) as program.train_step:
        for _ in range(count):
            jax.block_until_ready(program())
            found.append(folder.exists())
    program.train_step = unprofiled
    return found


SESSIONS = [([3, 5], 1, 6, 3), ([3, 9], 4, 2, 2), ([1, 1], 4, 2, 0), ([5, 5], 4, 2, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "taken", "count", "recorded"), SESSIONS)
def test_a_session_records_what_it_takes_of_the_steps(steps, taken, count, recorded, program, tmp_path):
    """One that begins after update ``taken``. The profile is there after the last update that it records."""
    there = take_steps(program, count, steps, taken, tmp_path / "profile")
    assert there == [taken < steps[1] <= step for step in range(taken + 1, taken + count + 1)]
    assert (tmp_path / "profile").exists() == bool(recorded)
    assert not recorded or steps_in(tmp_path / "profile") == recorded
