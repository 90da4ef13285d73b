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


@pytest.mark.slow
def test_the_steps_asked_for_are_recorded(program, tmp_path):
    assert take_steps(program, 6, [3, 5], 1, tmp_path / "profile") == [False] * 3 + [True] * 3  # the steps 2 to 7
    assert steps_in(tmp_path / "profile") == 3


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "recorded"), [([3, 9], 2), ([1, 1], 0), ([5, 5], 1)])
def test_a_session_records_what_it_takes_of_the_steps(steps, recorded, program, tmp_path):
    """One that begins after update 4 and ends after update 6."""
    take_steps(program, 2, steps, 4, tmp_path / "profile")
    assert (tmp_path / "profile").exists() == bool(recorded)
    assert not recorded or steps_in(tmp_path / "profile") == recorded
