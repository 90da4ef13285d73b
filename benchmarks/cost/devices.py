"""What devices hold in a training step and send to each other, by arithmetic.

XLA compiles the step into these transfers: tests/benchmarks/cost/test_scaling.py reads them in compiled steps.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from jax.sharding import AbstractMesh

from benchmarks.cost.operations import FLOAT, Parameter, StepCost, list_parameters
from model.config import ModelConfig
from model.loss import CHUNK
from model.sharding import MESH_AXES, parameter_spec
from training.config import TrainingConfig

DTYPE_BYTES = {"float32": 4, "bfloat16": 2}
STORING_KERNELS = ("definition", "xla")  # their gradients need the attention weights in memory


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

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.flops / 1e12:,.0f} TFLOP/s, {self.memory / 1e9:,.0f} GB at "
            f"{self.memory_bandwidth / 1e9:,.0f} GB/s, links {self.inside / 1e9:,.0f} GB/s in a node of "
            f"{self.node:,}, {self.between / 1e9:,.0f} GB/s between nodes"
        )


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
    repeated = [transfer._replace(bytes=slices * transfer.bytes) for transfer in parameter_transfers(cost, layout)]
    return [transfer for transfer in [*repeated, activation_sums(cost, layout)] if transfer.devices > 1]


def parameter_transfers(cost: StepCost, layout: Layout) -> list[Transfer]:
    """Return gathers of parameters and sums of their float32 gradients.

    Parameters are gathered once for both passes: matrices in the products' dtype, the looked-up table as is. With a
    divided vocabulary, logits and their gradients read the table in two layouts. XLA sums the table's three gradients
    one by one: two look-ups and the logits. Those of look-ups lie whole on every device and are divided over fsdp
    afterwards; where data is 1, this is a reduce-scatter, too.
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
        return [Transfer("gradients", "all-reduce", 3 * table + matrices + vectors, data, tensor)]
    operands = (matrices + table * (1 if tensor == 1 else 2)) * DTYPE_BYTES[cost.model.matmul_dtype] // FLOAT
    lookup_kind = "all-reduce" if data > 1 else "reduce-scatter"
    return [
        Transfer("parameters", "all-gather", operands + table, fsdp, tensor),
        Transfer("gradients", "reduce-scatter", matrices + table, fsdp, tensor),
        Transfer("gradients", "all-reduce", (matrices + table) // fsdp, data, fsdp * tensor),
        Transfer("gradients", lookup_kind, 2 * table, layout.row_groups, tensor),
        Transfer("gradients", "all-reduce", vectors, layout.row_groups, tensor),
    ]


def activation_sums(cost: StepCost, layout: Layout) -> Transfer:
    """Return partial sums over tensor, in float32 whatever ``model.dtype`` is.

    Forward: the outputs of every sublayer and of both look-ups. Backward: what queries, keys, values and the hidden
    layer each contribute to the gradient of their input, and the logits. The loss adds four numbers for each target.
    """
    model = cost.model
    sources = (2 + 4) * model.encoder_layers + 2 * model.decoder_layers + 1
    targets = (3 + 5) * model.decoder_layers + 1 + 1
    row = FLOAT * (model.d_model * (cost.sources * sources + cost.targets * targets) + 4 * cost.targets)
    return Transfer("activations", "all-reduce", cost.rows // layout.row_groups * row, layout.tensor)


def state_bytes(cost: StepCost, training: TrainingConfig, layout: Layout) -> int:
    """Return the bytes of parameters, two moments and the average; a few counts come on top."""
    return (4 if training.ema_decay else 3) * parameter_bytes(cost, layout)


def parameter_bytes(cost: StepCost, layout: Layout) -> int:
    """Return the bytes of all parameters on one device."""
    return sum(map(layout.parameter_bytes, list_parameters(cost.model, cost.vocab_size)))


def temporary_bytes(cost: StepCost, training: TrainingConfig, layout: Layout) -> int:
    """Return the bytes next to the state: activations and logits of a slice, and gradients."""
    part = replace(cost, rows=cost.rows // training.accumulation)
    gradients = (2 if training.accumulation > 1 else 1) * parameter_bytes(cost, layout)
    return activation_bytes(part, layout) + logit_bytes(part, layout) + gradients


def activation_bytes(cost: StepCost, layout: Layout) -> int:
    """Estimate what gradients need: inputs of products and norms, attention weights, dropout masks.

    With ``model.rematerialize`` these are the blocks' inputs, and the activations of one block at a time. The compiler
    decides which arrays it keeps, fuses away or computes twice.
    """
    model, rows = cost.model, cost.rows // layout.row_groups
    encoder = cost.sources * _token_bytes(model, layout.tensor, norms=2, keys=[cost.sources])
    decoder = cost.targets * _token_bytes(model, layout.tensor, norms=3, keys=[cost.targets, cost.sources])
    if not model.rematerialize:
        return rows * (model.encoder_layers * encoder + model.decoder_layers * decoder)
    inputs = cost.sources * model.encoder_layers + cost.targets * model.decoder_layers
    return rows * (DTYPE_BYTES[model.dtype] * model.d_model * inputs + max(encoder, decoder))


def _token_bytes(model: ModelConfig, tensor: int, norms: int, keys: list[int]) -> int:
    """Bytes of a token in a block with one attention for each number of ``keys``.

    Tensor divides heads, hidden units and attention weights, which are float32, and again an operand if that is
    narrower. It does not divide arrays of the whole width: a norm keeps its centred and its scaled input in float32,
    dropout a byte, a product its input.
    """
    dtype = DTYPE_BYTES[model.dtype]
    heads = 2 * model.num_heads * model.head_dim + model.groups * (model.head_dim + model.value_width)
    divided = dtype * (len(keys) * heads + 2 * model.d_ff) // tensor
    weight = FLOAT + (dtype if model.dtype != "float32" else 0)
    if model.kernel in STORING_KERNELS:
        divided += sum(count * model.num_heads * weight // tensor for count in keys)
    return divided + norms * model.d_model * (dtype + 1 + 2 * FLOAT)


def logit_bytes(cost: StepCost, layout: Layout) -> int:
    """Return the bytes of logits, their exponentials and gradients: by chunks on one device, all at once on a mesh."""
    positions = cost.rows // layout.row_groups * cost.targets
    parts = layout.tensor if cost.vocab_size % layout.tensor == 0 else 1
    return 3 * FLOAT * (min(positions, CHUNK) if layout.devices == 1 else positions) * cost.vocab_size // parts
