"""The state of a training step on each of many devices and what they send, by arithmetic.

Tests compare both with what compilers plan: tests/benchmarks/cost/test_transfers.py with XLA's for CPUs,
tests/benchmarks/compiled/test_aot.py with NVIDIA's and Google's.
"""

import math
from typing import NamedTuple

from jax.sharding import AbstractMesh

from benchmarks.cost.operations import FLOAT, Parameter, StepCost, list_parameters
from model.sharding import MESH_AXES, parameter_spec
from training.config import TrainingConfig

DTYPE_BYTES = {"float32": 4, "bfloat16": 2}
PARAMETERS, AGAIN = "parameters", "parameters, for the backward pass"
ACTIVATIONS, MOMENTA = "activations", "momenta, for Muon"


class Layout(NamedTuple):
    """The sizes of the mesh along its axes."""

    data: int
    fsdp: int
    tensor: int

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


def count_moments(parameter: Parameter, training: TrainingConfig) -> int:
    """Return how many moments the optimizer keeps of a parameter: Adam two, Muon one of a dense layer's matrix."""
    match training.optimizer:
        case "adam" | "adamw":
            return 2
        case "muon":
            return 1 if parameter.path.endswith("kernel") else 2
        case _:
            raise NotImplementedError(f"training.optimizer={training.optimizer}")


def state_bytes(cost: StepCost, training: TrainingConfig, layout: Layout) -> int:
    """Return the bytes of parameters, moments and the average on one device; a few counts come on top."""
    copies = 2 if training.ema_decay else 1
    return sum(
        (copies + count_moments(parameter, training)) * layout.parameter_bytes(parameter)
        for parameter in list_parameters(cost.model, cost.vocab_size)
    )
