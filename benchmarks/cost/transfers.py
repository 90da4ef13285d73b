"""What devices send to each other in a training step, by arithmetic.

B batch row · S source position · T target position · D model width · N query head · V vocabulary

XLA compiles the step into these transfers: tests/benchmarks/cost/test_scaling.py reads them in compiled steps.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from jax.sharding import AbstractMesh

from benchmarks.cost.step import FLOAT, Parameter, StepCost, list_parameters
from model.sharding import MESH_AXES, parameter_spec
from training.config import TrainingConfig

DTYPE_BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class Accelerator:
    """A device by its vendor's published peaks. Bandwidths are bytes a second, in one direction for links."""

    name: str
    flops: float  # dense bfloat16 operations a second
    memory: float  # bytes
    memory_bandwidth: float
    inside: float  # bandwidth of a device to others of its node
    between: float  # bandwidth to other nodes; every device has a link of its own
    node: int  # devices in a node


class Layout(NamedTuple):
    """The sizes of the mesh along its axes."""

    data: int
    fsdp: int
    tensor: int

    def __str__(self) -> str:
        return "·".join(map(str, self))

    @property
    def devices(self) -> int:
        """Number of devices."""
        return math.prod(self)

    @property
    def row_groups(self) -> int:
        """Number of devices, or groups of them along tensor, that hold rows of their own."""
        return self.data * self.fsdp

    def parameter_bytes(self, parameter: Parameter, axes: tuple[str, ...] = MESH_AXES) -> int:
        """Return the bytes of a parameter on one device if only these axes of the mesh divide it."""
        mesh = AbstractMesh(self, MESH_AXES)
        dividing = [name for name in parameter_spec(mesh, *parameter) if name in axes]
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
    repeated = [*parameter_gathers(cost, layout), *gradient_sums(cost, layout)]
    transfers = [transfer._replace(bytes=slices * transfer.bytes) for transfer in repeated]
    return [transfer for transfer in [*transfers, *activation_sums(cost, layout)] if transfer.devices > 1]


def parameter_gathers(cost: StepCost, layout: Layout) -> list[Transfer]:
    """Return gathers of parameters, once for both passes: matrices in the products' dtype, the looked-up table as is.

    With a divided vocabulary, logits and their gradients read the table in two layouts.
    """
    table, matrices, _ = _bytes_by_use(cost, layout)
    operands = (matrices + table * (1 if layout.tensor == 1 else 2)) * DTYPE_BYTES[cost.model.matmul_dtype] // FLOAT
    return [Transfer("parameters", "all-gather", operands + table, layout.fsdp, layout.tensor)]


def gradient_sums(cost: StepCost, layout: Layout) -> list[Transfer]:
    """Return sums of float32 gradients. XLA sums the table's three gradients one by one: two look-ups and the logits.

    Those of look-ups lie whole on every device and are divided over fsdp afterwards; where data is 1, this is a
    reduce-scatter, too.
    """
    table, matrices, vectors = _bytes_by_use(cost, layout)
    _, fsdp, tensor = layout
    if fsdp == 1:
        return [Transfer("gradients", "all-reduce", 3 * table + matrices + vectors, layout.data, tensor)]
    lookup_kind = "all-reduce" if layout.data > 1 else "reduce-scatter"
    return [
        Transfer("gradients", "reduce-scatter", matrices + table, fsdp, tensor),
        Transfer("gradients", "all-reduce", (matrices + table) // fsdp, layout.data, fsdp * tensor),
        Transfer("gradients", lookup_kind, 2 * table, layout.row_groups, tensor),
        Transfer("gradients", "all-reduce", vectors, layout.row_groups, tensor),
    ]


def activation_sums(cost: StepCost, layout: Layout) -> list[Transfer]:
    """Return partial sums over tensor, in float32 whatever ``model.dtype`` is.

    Forward: the outputs of every sublayer and of both look-ups. Backward: what queries, keys, values and the hidden
    layer each contribute to the gradient of their input, and the logits. The loss adds four numbers for each target.
    """
    model = cost.model
    sources = (2 + 4) * model.encoder_layers + 2 * model.decoder_layers + 1
    targets = (3 + 5) * model.decoder_layers + 1 + 1
    width = FLOAT * model.d_model * (cost.sources * sources + cost.targets * targets)
    row = width + 4 * FLOAT * cost.targets
    return [Transfer("activations", "all-reduce", cost.rows // layout.row_groups * row, layout.tensor)]


def _bytes_by_use(cost: StepCost, layout: Layout) -> tuple[int, int, int]:
    """Return the bytes of the table, of other arrays that fsdp divides, and of the rest, before fsdp divides them."""
    table = matrices = vectors = 0
    for parameter in list_parameters(cost.model, cost.vocab_size):
        size = layout.parameter_bytes(parameter, ("tensor",))
        if parameter.axes == "VD":
            table += size
        elif "D" in parameter.axes and parameter.axes != "D":
            matrices += size
        else:
            vectors += size
    return table, matrices, vectors
