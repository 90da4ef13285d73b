"""Transfers and state by hand, and as the compiler plans them."""

import json
from dataclasses import replace

import jax
import pytest

from benchmarks.cost.transfers import AGAIN, Layout, Transfer, list_transfers, state_bytes
from tests.benchmarks.cost.collectives import COST, MUON_OF_TWO_VIEWS, TRAINING
from training.config import TrainingConfig
from training.state import state_shapes

LAYOUTS = ["8·1·1", "1·8·1", "1·1·8", "2·2·2", "2·2·2 with Muon and two views"]
SCALARS = 600  # bytes: norms of single arrays, which are summed over what divides them
COUNTS = 13 * 4  # of steps, sums and skipped updates


@pytest.fixture(scope="module")
def report(call):
    done = call("tests/benchmarks/cost/collectives.py", "1·1·1", *LAYOUTS)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


def named(name: str) -> tuple[Layout, TrainingConfig]:
    shape, _, techniques = name.partition(" ")
    return Layout(*map(int, shape.split("·"))), MUON_OF_TWO_VIEWS if techniques else TRAINING


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_compiled_steps_send_these_bytes(report, name):
    """A CPU's compiler reduces whole arrays to take a part, reduces each of the table's gradients, and gathers once."""
    (layout, training), expected = named(name), {"all-reduce": 0, "all-gather": 0}
    for transfer in list_transfers(COST, training, layout):
        if transfer.content != AGAIN:
            expected[transfer.kind.replace("reduce-scatter", "all-reduce")] += transfer.bytes
    if layout.row_groups > 1:
        expected["all-reduce"] += 2 * 4 * 512 * 64 // layout.tensor
    compiled = expected | report[name]["sent"]
    assert set(compiled) == set(expected)
    assert compiled["all-gather"] == expected["all-gather"]
    assert 0 <= compiled["all-reduce"] - expected["all-reduce"] < SCALARS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["1·1·1", *LAYOUTS])
def test_compiled_steps_hold_these_bytes(report, name):
    layout, training = named(name)
    batch = 4 * COST.rows // layout.row_groups * (3 * COST.sources + 4 * COST.targets)
    counts = COUNTS + (4 if training.optimizer == "muon" else 0)
    assert report[name]["state"] == state_bytes(COST, training, layout) + batch + counts


def test_a_ring_by_hand():
    """Of n parts, all but one go on to the next device: once to share them, once before that to sum them."""
    assert Transfer("", "all-gather", 800, 8).sent() == Transfer("", "reduce-scatter", 800, 8).sent() == 700
    assert Transfer("", "all-reduce", 800, 8).sent() == 1400
    assert Transfer("", "all-reduce", 800, 1).sent() == 0


def test_gradients_of_all_devices():
    [gradients] = list_transfers(COST, TRAINING, Layout(8, 1, 1))
    assert gradients.bytes == 4 * COST.parameters() and gradients.devices == 8
    slices = replace(TRAINING, accumulation=2)
    assert list_transfers(COST, slices, Layout(8, 1, 1)) == [gradients._replace(bytes=2 * gradients.bytes)]
    assert list_transfers(COST, TRAINING, Layout(1, 1, 1)) == []


def test_gathered_operands_are_as_wide_as_products_read_them():
    """Two bytes of every matrix instead of four; what look-ups read stays four."""
    narrow = replace(COST, model=replace(COST.model, matmul_dtype="bfloat16"))
    wide, halved = (list_transfers(cost, TRAINING, Layout(1, 8, 1))[0] for cost in (COST, narrow))
    table = 4 * 512 * 64
    assert wide.kind == "all-gather" and halved.bytes - table == (wide.bytes - table) / 2


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_state_of_one_device_is_that_of_the_optimizer(optimizer):
    training = TrainingConfig(steps=1, optimizer=optimizer, ema_decay=0.9)
    state = state_shapes(COST.model, training, COST.vocab_size)
    leaves = jax.tree.leaves((state.params, state.averaged, state.opt_state))
    assert state_bytes(COST, training, Layout(1, 1, 1)) == 4 * sum(leaf.size for leaf in leaves if leaf.ndim)
