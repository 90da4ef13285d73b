"""What a training step costs on many devices, by arithmetic alone: memory, bytes sent, and the time that both leave.

B batch row · S source position · T target position · D model width · F feed-forward width · N query head · V vocabulary

The transfers are those that XLA makes of this program: tests/benchmarks/cost/test_scaling.py reads them in compiled
steps.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import jax
from flax import nnx
from jax.sharding import AbstractMesh

from benchmarks.cost.step import FLOAT, StepWork
from model.config import ModelConfig
from model.loss import CHUNK
from model.sharding import MESH_AXES, parameter_spec
from model.transformer import Transformer
from training.config import TrainingConfig

WIDTHS = {"float32": 4, "bfloat16": 2}  # bytes
KEPT_WEIGHTS = ("definition", "xla")  # kernels whose gradients need the weights of attention in memory


@dataclass(frozen=True)
class Accelerator:
    """A device by its vendor's published peaks; bandwidths are bytes a second, of links in one direction."""

    name: str
    flops: float  # bfloat16 operations a second, dense
    memory: float  # bytes
    memory_bandwidth: float
    inside: float  # what a device sends to others of its node
    between: float  # what it sends to other nodes, each device by a link of its own
    node: int  # devices


class Layout(NamedTuple):
    """The sizes of the mesh."""

    data: int
    fsdp: int
    tensor: int

    def __str__(self) -> str:
        return "·".join(map(str, self))

    @property
    def devices(self) -> int:
        """All of them."""
        return math.prod(self)

    @property
    def by_rows(self) -> int:
        """How many devices have rows of their own."""
        return self.data * self.fsdp


class Transfer(NamedTuple):
    """Collectives of one kind in a step, together."""

    what: str
    kind: str
    bytes: int  # on one device: of what is reduced, or of what is there once it is gathered
    devices: int  # that take part in one of them
    stride: int = 1  # from one of these to the next, as the mesh numbers them

    def sent(self) -> float:
        """Bytes that a device sends around a ring: every part of the array but its own, to sum and to share."""
        passes = 2 if self.kind == "all-reduce" else 1
        return passes * (self.devices - 1) / self.devices * self.bytes

    def seconds(self, accelerator: Accelerator) -> float:
        """At the bandwidth of the slowest link on the way, without latency.

        A ring leaves a node once. As many rings as the node has devices of this collective share its bytes, each with
        a link of its own to the next node.
        """
        if self.devices * self.stride <= accelerator.node:
            return self.sent() / accelerator.inside
        links = max(1, accelerator.node // self.stride)
        return self.sent() / min(accelerator.inside, links * accelerator.between)


class Parameter(NamedTuple):
    """Letters of its axes (model/sharding.py), and their sizes."""

    axes: str
    shape: tuple[int, ...]


@cache
def parameters_of(model: ModelConfig, vocab_size: int) -> tuple[Parameter, ...]:
    """All of them, without their numbers."""
    built = nnx.eval_shape(lambda: Transformer(model, vocab_size, rngs=nnx.Rngs(0)))
    leaves = jax.tree.leaves(nnx.state(built, nnx.Param), is_leaf=lambda node: isinstance(node, nnx.Param))
    return tuple(Parameter(leaf.get_metadata("axes"), leaf.shape) for leaf in leaves)


def bytes_on_device(parameter: Parameter, layout: Layout, axes: tuple[str, ...] = MESH_AXES) -> int:
    """What a device has of a parameter, if these axes of the mesh divide it."""
    mesh = AbstractMesh(layout, MESH_AXES)
    divided = [name for name in parameter_spec(mesh, *parameter) if name in axes]
    return FLOAT * math.prod(parameter.shape) // math.prod(mesh.shape[name] for name in divided)


def state_bytes(work: StepWork, training: TrainingConfig, layout: Layout) -> int:
    """Parameters, two moments and the average on one device; some counts come to them."""
    copies = 4 if training.ema_decay else 3
    return copies * sum(bytes_on_device(parameter, layout) for parameter in parameters_of(work.model, work.vocab_size))


# Bytes sent


def transfers(work: StepWork, training: TrainingConfig, layout: Layout) -> list[Transfer]:
    """What a device exchanges in a step. With ``training.accumulation`` gradients and parameters go once a slice."""
    slices = training.accumulation
    once = [*gathers(work, layout), *gradient_sums(work, layout)]
    all_of_them = [each._replace(bytes=slices * each.bytes) for each in once] + activation_sums(work, layout)
    return [each for each in all_of_them if each.devices > 1]


def gathers(work: StepWork, layout: Layout) -> list[Transfer]:
    """Parameters, once for both directions: matrices as operands of products, for look-ups the table as it is.

    Of a divided vocabulary, logits and their gradients read the table in two layouts.
    """
    table, matrices, _ = _by_use(work, layout)
    operands = (matrices + table * (1 if layout.tensor == 1 else 2)) * WIDTHS[work.model.matmul_dtype] // FLOAT
    return [Transfer("parameters", "all-gather", operands + table, layout.fsdp, layout.tensor)]


def gradient_sums(work: StepWork, layout: Layout) -> list[Transfer]:
    """Gradients in float32. Of the table there are three, which XLA sums over devices one by one.

    Those of look-ups lie whole on every device, and are divided over fsdp afterwards; where data is 1, that is a
    reduce-scatter, too.
    """
    table, matrices, vectors = _by_use(work, layout)
    _, fsdp, tensor = layout
    if fsdp == 1:
        return [Transfer("gradients", "all-reduce", 3 * table + matrices + vectors, layout.data, tensor)]
    of_lookups = "all-reduce" if layout.data > 1 else "reduce-scatter"
    return [
        Transfer("gradients", "reduce-scatter", matrices + table, fsdp, tensor),
        Transfer("gradients", "all-reduce", (matrices + table) // fsdp, layout.data, fsdp * tensor),
        Transfer("gradients", of_lookups, 2 * table, layout.by_rows, tensor),
        Transfer("gradients", "all-reduce", vectors, layout.by_rows, tensor),
    ]


def activation_sums(work: StepWork, layout: Layout) -> list[Transfer]:
    """Partial sums over tensor, in float32 whatever the activations are.

    Forward, the outputs of every sublayer and of both look-ups. Backward, what queries, keys, values and the hidden
    layer give to their input, each by itself, and the logits. Of the loss four numbers for each target.
    """
    model = work.model
    sources = (2 + 4) * model.encoder_layers + 2 * model.decoder_layers + 1
    targets = (3 + 5) * model.decoder_layers + 1 + 1
    width = FLOAT * model.d_model * (work.sources * sources + work.targets * targets)
    row = width + 4 * FLOAT * work.targets
    return [Transfer("activations", "all-reduce", work.rows // layout.by_rows * row, layout.tensor)]


def _by_use(work: StepWork, layout: Layout) -> tuple[int, int, int]:
    """Bytes of the table, of what else fsdp divides, and of the rest, on a device with all of fsdp's parts."""
    table = matrices = vectors = 0
    for parameter in parameters_of(work.model, work.vocab_size):
        size = bytes_on_device(parameter, layout, ("tensor",))
        if parameter.axes == "VD":
            table += size
        elif "D" in parameter.axes and parameter.axes != "D":
            matrices += size
        else:
            vectors += size
    return table, matrices, vectors


# Memory


def activation_bytes(work: StepWork, layout: Layout) -> int:
    """What gradients need of the blocks: inputs of products and of norms, the weights of attention, dropout's masks.

    With ``model.rematerialize`` the blocks' inputs, and one block's activations at a time. An estimate: which arrays
    are kept and which are fused away or computed twice, the compiler decides.
    """
    model, rows = work.model, work.rows // layout.by_rows
    encoder = work.sources * _sublayers(model, 2, 1, layout.tensor) + work.sources * _weights(
        model, work.sources, layout
    )
    decoder = work.targets * _sublayers(model, 3, 2, layout.tensor)
    decoder += work.targets * (_weights(model, work.targets, layout) + _weights(model, work.sources, layout))
    if not model.rematerialize:
        return rows * (model.encoder_layers * encoder + model.decoder_layers * decoder)
    inputs = work.sources * model.encoder_layers + work.targets * model.decoder_layers
    return rows * (WIDTHS[model.dtype] * model.d_model * inputs + max(encoder, decoder))


def _sublayers(model: ModelConfig, norms: int, attentions: int, tensor: int) -> int:
    """Bytes of a token in a block: heads and hidden units, which tensor divides, and what has the whole width.

    A norm keeps its centred and its scaled input in float32, dropout a byte, a product its input.
    """
    dtype = WIDTHS[model.dtype]
    heads = 2 * model.num_heads * model.head_dim + model.groups * (model.head_dim + model.value_width)
    divided = dtype * (attentions * heads + 2 * model.d_ff) // tensor
    return divided + norms * model.d_model * (dtype + 1 + 2 * FLOAT)


def _weights(model: ModelConfig, keys: int, layout: Layout) -> int:
    """Bytes of a query's weights over the keys: in float32, and once more as an operand if that is narrower."""
    if model.kernel not in KEPT_WEIGHTS:
        return 0
    operand = WIDTHS[model.dtype] if model.dtype != "float32" else 0
    return keys * model.num_heads * (FLOAT + operand) // layout.tensor


def logit_bytes(work: StepWork, layout: Layout) -> int:
    """Logits, their exponentials and their gradients: of a chunk of positions, on a mesh of all that a device has."""
    positions = work.rows // layout.by_rows * work.targets
    parts = layout.tensor if work.vocab_size % layout.tensor == 0 else 1
    return 3 * FLOAT * (min(positions, CHUNK) if layout.devices == 1 else positions) * work.vocab_size // parts


def temporary_bytes(work: StepWork, training: TrainingConfig, layout: Layout) -> int:
    """What is there beside the state while a step runs: activations of a slice, logits, gradients."""
    part = replace(work, rows=work.rows // training.accumulation)
    gradients = sum(bytes_on_device(parameter, layout) for parameter in parameters_of(work.model, work.vocab_size))
    sums = 2 if training.accumulation > 1 else 1
    return activation_bytes(part, layout) + logit_bytes(part, layout) + sums * gradients


# Time


class Times(NamedTuple):
    """Seconds of a step."""

    compute: float  # of the matrix products
    update: float  # of the optimizer, which reads and writes its part of the state
    behind: float  # transfers that can go on behind products: of gradients and parameters
    between: float  # transfers that the next product waits for: of activations

    def overlapped(self) -> float:
        """If all that can be hidden is."""
        return max(self.compute, self.behind) + self.between + self.update

    def in_turn(self) -> float:
        """If nothing is."""
        return sum(self)


def times(
    work: StepWork, training: TrainingConfig, layout: Layout, accelerator: Accelerator, utilisation: float
) -> Times:
    """``utilisation`` is the part of the peak that the products of the whole model reach on one device."""
    sent = transfers(work, training, layout)
    recomputed = 4 / 3 if work.model.rematerialize else 1
    return Times(
        recomputed * work.flops() / layout.devices / (utilisation * accelerator.flops),
        work.update_bytes(training) / (layout.fsdp * layout.tensor) / accelerator.memory_bandwidth,
        sum(each.seconds(accelerator) for each in sent if each.what != "activations"),
        sum(each.seconds(accelerator) for each in sent if each.what == "activations"),
    )
