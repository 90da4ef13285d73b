"""Expected state, transfers, time and efficiency of a training step on many devices, by arithmetic.

Tests compare transfers and state with what compilers plan: tests/benchmarks/cost/test_scaling.py with XLA's for CPUs,
tests/benchmarks/compiled/test_aot.py with NVIDIA's and Google's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from jax.sharding import AbstractMesh

from benchmarks.cost.accelerators import Accelerator
from benchmarks.cost.operations import FLOAT, Parameter, StepCost, count_moments, list_parameters
from common.errors import UserError
from common.text_table import Table, three_digits
from model.sharding import MESH_AXES, parameter_spec
from training.config import TrainingConfig
from training.devices.mesh import check_divisible

DTYPE_BYTES = {"float32": 4, "bfloat16": 2}
LARGEST_DIVISION = 8  # devices over which mixed layouts divide by fsdp or tensor
PARAMETERS, AGAIN = "parameters", "parameters, for the backward pass"
ACTIVATIONS, MOMENTA = "activations", "momenta, for Muon"


class Layout(NamedTuple):
    """The sizes of the mesh along its axes."""

    data: int
    fsdp: int
    tensor: int

    def __str__(self) -> str:
        return "·".join(map(str, self))

    @property
    def devices(self) -> int:
        return math.prod(self)

    @property
    def row_groups(self) -> int:
        """Number of devices, or groups of them along tensor, that hold rows of their own."""
        return self.data * self.fsdp

    def parameter_bytes(self, parameter: Parameter, axes: tuple[str, ...] = MESH_AXES) -> int:
        """Return the bytes of a parameter on one device if only these axes of the mesh divide it."""
        mesh = AbstractMesh(self, MESH_AXES)
        dividing = [name for name in parameter_spec(mesh, parameter.axes, parameter.shape) if name in axes]
        return FLOAT * math.prod(parameter.shape) // math.prod(mesh.shape[name] for name in dividing)


class Transfer(NamedTuple):
    """All collectives of one kind in a step."""

    content: str
    kind: str  # all-reduce, all-gather or reduce-scatter
    bytes: int  # on one device: of what is reduced, or of what has been gathered
    devices: int  # that take part in one collective
    stride: int = 1  # between the numbers of neighbouring devices in the mesh

    def sent(self) -> float:
        """Return the bytes that a device sends around a ring: all parts but its own, twice to sum and then share."""
        passes = 2 if self.kind == "all-reduce" else 1
        return passes * (self.devices - 1) / self.devices * self.bytes

    def seconds(self, accelerator: Accelerator) -> float:
        """Return the time at the bandwidth of the slowest link on the way, without latency.

        A ring leaves a node once. The devices of a node that take part each run a ring over their own link to the next
        node, and share the bytes.
        """
        if self.devices * self.stride <= accelerator.node:
            return self.sent() / accelerator.inside
        links = max(1, accelerator.node // self.stride)
        return self.sent() / min(accelerator.inside, links * accelerator.between)


def list_transfers(cost: StepCost, training: TrainingConfig, layout: Layout) -> list[Transfer]:
    """Return what devices exchange in a step; parameters and gradients once for each slice of accumulation."""
    slices = training.accumulation
    repeated = [transfer._replace(bytes=slices * transfer.bytes) for transfer in _parameter_transfers(cost, layout)]
    others = [_activation_sums(cost, training, layout), *_momentum_gathers(cost, training, layout)]
    return [transfer for transfer in [*repeated, *others] if transfer.devices > 1]


def _parameter_transfers(cost: StepCost, layout: Layout) -> list[Transfer]:
    """Return gathers of parameters and sums of their float32 gradients.

    Matrices are gathered in the products' dtype, for the forward and again for the backward pass. The table is gathered
    once, as it is; where data is 1, its gradient is divided over fsdp as it is summed, else afterwards.
    """
    sizes = [
        (parameter.axes, layout.parameter_bytes(parameter, ("tensor",)))
        for parameter in list_parameters(cost.model, cost.vocab_size)
    ]
    table = sum(size for axes, size in sizes if axes == "VD")
    vectors = sum(size for axes, size in sizes if axes == "D" or "D" not in axes)  # fsdp divides all others
    matrices = sum(size for _, size in sizes) - table - vectors
    data, fsdp, tensor = layout
    if fsdp == 1:
        return [Transfer("gradients", "all-reduce", table + matrices + vectors, data, tensor)]
    operands = matrices * DTYPE_BYTES[cost.model.matmul_dtype] // FLOAT
    return [
        Transfer(PARAMETERS, "all-gather", table + operands, fsdp, tensor),
        Transfer(AGAIN, "all-gather", operands, fsdp, tensor),
        Transfer("gradients", "reduce-scatter", matrices, fsdp, tensor),
        Transfer("gradients", "all-reduce", matrices // fsdp, data, fsdp * tensor),
        Transfer("gradients", "all-reduce" if data > 1 else "reduce-scatter", table, layout.row_groups, tensor),
        Transfer("gradients", "all-reduce", vectors, layout.row_groups, tensor),
    ]


def _activation_sums(cost: StepCost, training: TrainingConfig, layout: Layout) -> Transfer:
    """Return partial sums over tensor, in float32 whatever ``model.dtype`` is.

    Forward: the outputs of every sublayer and of both look-ups. Backward: what queries, keys, values and the hidden
    layer each contribute to the gradient of their input, and the logits. The loss adds four numbers for each target,
    the divergence of two views four more.
    """
    model = cost.model
    sources = (2 + 4) * model.encoder_layers + 2 * model.decoder_layers + 1
    targets = (3 + 5) * model.decoder_layers + 1 + 1
    numbers = 4 if training.consistency == "none" else 8
    row = FLOAT * (model.d_model * (cost.sources * sources + cost.targets * targets) + numbers * cost.targets)
    rows = cost.of_views(training).rows // layout.row_groups
    return Transfer(ACTIVATIONS, "all-reduce", rows * row, layout.tensor)


def _momentum_gathers(cost: StepCost, training: TrainingConfig, layout: Layout) -> list[Transfer]:
    """Return gathers of the float32 matrices that Muon makes orthogonal, over tensor and then fsdp; of Adam none."""
    parameters = list_parameters(cost.model, cost.vocab_size)
    size = FLOAT * sum(math.prod(one.shape) for one in parameters if count_moments(one, training) == 1)
    gathers = [
        Transfer(MOMENTA, "all-gather", size // layout.fsdp, layout.tensor),
        Transfer(MOMENTA, "all-gather", size, layout.fsdp, layout.tensor),
    ]
    return gathers if size else []


def state_bytes(cost: StepCost, training: TrainingConfig, layout: Layout) -> int:
    """Return the bytes of parameters, moments and the average on one device; a few counts come on top."""
    copies = 2 if training.ema_decay else 1
    return sum(
        (copies + count_moments(parameter, training)) * layout.parameter_bytes(parameter)
        for parameter in list_parameters(cost.model, cost.vocab_size)
    )


class StepTime(NamedTuple):
    """Seconds of a step, by what they are spent on."""

    compute: float  # matrix products
    update: float  # the optimizer, which reads and writes its part of the state
    hideable: float  # transfers of gradients and parameters, which can run behind products
    blocking: float  # transfers of activations and of Muon's momenta, which the next product waits for

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
        operations = (4 / 3 if cost.model.rematerialize else 1) * cost.of_views(self.training).flops()
        hideable = blocking = 0.0
        for transfer in list_transfers(cost, self.training, layout):
            if transfer.content in (ACTIVATIONS, MOMENTA):
                blocking += transfer.seconds(self.accelerator)
            else:
                hideable += transfer.seconds(self.accelerator)
        return StepTime(
            operations / layout.devices / (self.utilisation * self.accelerator.flops),
            cost.update_bytes(self.training) / (layout.fsdp * layout.tensor) / self.accelerator.memory_bandwidth,
            hideable,
            blocking,
        )


def step_table(cost: StepCost, scenario: Scenario) -> Table:
    """Describe a step independently of the number of devices."""
    operations = cost.of_views(scenario.training).flops()
    sizes = cost.bytes(scenario.training)
    sizes["the optimizer reads and writes"] = cost.update_bytes(scenario.training)
    rows = [
        ["batch", f"{cost} tokens, if none is padding: {cost.places():,}"],
        ["parameters", f"{cost.parameters():,}"],
        [
            "operations of matrix products",
            f"{operations / 1e12:.2f} TFLOP, {operations / cost.places() / 1e6:.0f} MFLOP a token",
        ],
        *([name, f"{size / 1e6:,.0f} MB"] for name, size in sizes.items() if size),
        ["accelerator", str(scenario.accelerator)],
        ["utilisation of its peak, assumed", f"{scenario.utilisation:.0%}"],
    ]
    return Table("a step", "Bytes of all devices together.", ["", ""], rows)


def scaling_table(
    cost: StepCost, scenario: Scenario, devices: Sequence[int], rows_per_device: int | None = None
) -> Table:
    """Compare layouts on these numbers of devices, on the rows of ``cost`` or on a fixed number for each device."""
    header = ["devices", "layout", "rows a device", "state GB", "sent MB", "compute ms", "sending ms", "efficiency"]
    single = replace(cost, rows=rows_per_device or cost.rows)
    seconds_a_row = scenario.step_time(single, Layout(1, 1, 1)).sequential() / single.rows
    rows = [
        _scaling_row(batch, scenario, layout, seconds_a_row)
        for count in devices
        for batch in [replace(cost, rows=rows_per_device * count if rows_per_device else cost.rows)]
        for layout in choose_layouts(count)
    ]
    title = f"{rows_per_device} rows on each device" if rows_per_device else f"a batch of {cost.rows} rows"
    note = "Efficiency: transfers hidden behind products / not hidden. A dash: the rows do not divide so."
    return Table(title, note, header, rows)


def choose_layouts(devices: int) -> list[Layout]:
    """Return all devices on data, all on fsdp, and up to eight on fsdp or tensor with the rest on data."""
    inner = min(devices, LARGEST_DIVISION)
    mixed = [(devices // inner, inner, 1)] if devices > inner else []
    shapes = [(devices, 1, 1), (1, devices, 1), *mixed, (devices // inner, 1, inner)]
    return [Layout(*shape) for shape in dict.fromkeys(shapes)]


def _scaling_row(cost: StepCost, scenario: Scenario, layout: Layout, seconds_a_row: float) -> list[str]:
    """``seconds_a_row`` are those of one device alone, which efficiency compares with."""
    first = [f"{layout.devices}", str(layout)]
    try:
        check_divisible(AbstractMesh(layout, MESH_AXES), cost.model, cost.rows, scenario.training.accumulation)
    except UserError:
        return [*first, *["–"] * 6]
    time = scenario.step_time(cost, layout)
    ideal = cost.rows * seconds_a_row / layout.devices
    sent = sum(transfer.sent() for transfer in list_transfers(cost, scenario.training, layout))
    return [
        *(*first, f"{cost.rows / layout.row_groups:,.0f}"),
        f"{state_bytes(cost, scenario.training, layout) / 1e9:.2f}",
        f"{sent / 1e6:,.0f}",
        three_digits(1e3 * (time.compute + time.update)),
        f"{1e3 * time.hideable:.2f} + {1e3 * time.blocking:.2f}",
        f"{ideal / time.overlapped():.0%} / {ideal / time.sequential():.0%}",
    ]
