"""Expected time and efficiency of a training step on many devices, by arithmetic, and the tables that show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jax.sharding import AbstractMesh

from benchmarks.cost.devices import Accelerator, Layout, list_transfers, state_bytes, temporary_bytes
from benchmarks.cost.operations import StepCost
from common.errors import UserError
from common.text_table import Table, three_digits
from model.sharding import MESH_AXES
from training.config import TrainingConfig
from training.devices.mesh import check_divisible

LARGEST_DIVISION = 8  # devices over which mixed layouts divide by fsdp or tensor


class StepTime(NamedTuple):
    """Seconds of a step, by what they are spent on."""

    compute: float  # matrix products
    update: float  # the optimizer, which reads and writes its part of the state
    hideable: float  # transfers of gradients and parameters, which can run behind products
    blocking: float  # transfers of activations, which the next product waits for

    def overlapped(self) -> float:
        """Return the seconds if every hideable transfer is hidden."""
        return max(self.compute, self.hideable) + self.blocking + self.update

    def sequential(self) -> float:
        """Return the seconds if nothing is hidden."""
        return sum(self)


@dataclass(frozen=True)
class Scenario:
    """Training on one kind of accelerator, whose products reach the share ``utilisation`` of the published peak."""

    training: TrainingConfig
    accelerator: Accelerator
    utilisation: float

    def step_time(self, cost: StepCost, layout: Layout) -> StepTime:
        """Return the expected time of a step on all devices of a layout."""
        recomputed = 4 / 3 if cost.model.rematerialize else 1
        transfers = list_transfers(cost, self.training, layout)
        sending = [(transfer.content == "activations", transfer.seconds(self.accelerator)) for transfer in transfers]
        return StepTime(
            recomputed * cost.flops() / layout.devices / (self.utilisation * self.accelerator.flops),
            cost.update_bytes(self.training) / (layout.fsdp * layout.tensor) / self.accelerator.memory_bandwidth,
            hideable=sum(seconds for is_blocking, seconds in sending if not is_blocking),
            blocking=sum(seconds for is_blocking, seconds in sending if is_blocking),
        )


def step_table(cost: StepCost, scenario: Scenario) -> Table:
    """Describe a step independently of the number of devices."""
    flops = f"{cost.flops() / 1e12:.2f} TFLOP, {cost.flops() / cost.places() / 1e6:.0f} MFLOP a token"
    rows = [
        ["batch", f"{cost} tokens, if none is padding: {cost.places():,}"],
        ["parameters", f"{cost.parameters():,}"],
        ["operations of matrix products", flops],
        *([name, _megabytes(size)] for name, size in cost.bytes(scenario.training).items() if size),
        ["the optimizer reads and writes", _megabytes(cost.update_bytes(scenario.training))],
        ["accelerator", str(scenario.accelerator)],
        ["utilisation of its peak, assumed", f"{scenario.utilisation:.0%}"],
    ]
    return Table("a step", "Bytes of all devices together.", ["", ""], rows)


def scaling_table(
    cost: StepCost, scenario: Scenario, devices: Sequence[int], rows_per_device: int | None = None
) -> Table:
    """Compare layouts on these numbers of devices, on the rows of ``cost`` or on a fixed number for each device."""
    header = ["devices", "layout", "rows a device", "state GB", "temporary GB", "sent MB", "compute ms", "sending ms"]
    single, rows = replace(cost, rows=rows_per_device or cost.rows), []
    for count in devices:
        batch = replace(cost, rows=rows_per_device * count if rows_per_device else cost.rows)
        rows += [_scaling_row(batch, scenario, layout, single) for layout in choose_layouts(count)]
    title = f"{rows_per_device} rows on each device" if rows_per_device else f"a batch of {cost.rows} rows"
    note = "Efficiency: transfers hidden behind products / not hidden. A dash: the rows do not divide so."
    return Table(title, note, [*header, "efficiency"], rows)


def choose_layouts(devices: int) -> list[Layout]:
    """Return all devices on data, all on fsdp, and up to eight on fsdp or tensor with the rest on data."""
    inner = min(devices, LARGEST_DIVISION)
    mixed = [(devices // inner, inner, 1)] if devices > inner else []
    shapes = [(devices, 1, 1), (1, devices, 1), *mixed, (devices // inner, 1, inner)]
    return [Layout(*shape) for shape in dict.fromkeys(shapes)]


def _scaling_row(cost: StepCost, scenario: Scenario, layout: Layout, single: StepCost) -> list[str]:
    """Efficiency compares with ``single``, the step of one device alone."""
    training, time = scenario.training, scenario.step_time(cost, layout)
    first = [f"{layout.devices}", str(layout)]
    try:
        check_divisible(AbstractMesh(layout, MESH_AXES), cost.model, cost.rows, training.accumulation)
    except UserError:
        return [*first, *["–"] * 7]
    seconds_per_row = scenario.step_time(single, Layout(1, 1, 1)).sequential() / single.rows
    ideal = cost.rows * seconds_per_row / layout.devices
    state = state_bytes(cost, training, layout)
    sent = sum(transfer.sent() for transfer in list_transfers(cost, training, layout))
    return [
        *(*first, f"{cost.rows / layout.row_groups:,.0f}", f"{state / 1e9:.2f}"),
        _temporary_cell(cost, training, layout, scenario.accelerator.memory - state),
        f"{sent / 1e6:,.0f}",
        three_digits(1e3 * (time.compute + time.update)),
        f"{1e3 * time.hideable:.2f} + {1e3 * time.blocking:.2f}",
        f"{ideal / time.overlapped():.0%} / {ideal / time.sequential():.0%}",
    ]


def _temporary_cell(cost: StepCost, training: TrainingConfig, layout: Layout, free_bytes: float) -> str:
    """Gigabytes without and with rematerialization."""
    cells = []
    for rematerialize in (False, True):
        model = replace(cost.model, rematerialize=rematerialize)
        size = temporary_bytes(replace(cost, model=model), training, layout)
        cells.append(f"{size / 1e9:.1f}" + (" (no room)" if size > free_bytes else ""))
    return " / ".join(cells)


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"
