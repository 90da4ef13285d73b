"""Memory of one device in a training step, by arithmetic: the state, and what lives only while the step runs.

B batch row · S source position · T target position · D model width · F feed-forward width · N query head · V vocabulary
"""

from dataclasses import replace

from benchmarks.cost.step import FLOAT, StepCost, list_parameters
from benchmarks.cost.transfers import DTYPE_BYTES, Layout
from model.config import ModelConfig
from model.loss import CHUNK
from training.config import TrainingConfig

STORING_KERNELS = ("definition", "xla")  # their gradients need the attention weights in memory


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
    source_weights = _attention_weight_bytes(model, cost.sources, layout)
    target_weights = _attention_weight_bytes(model, cost.targets, layout)
    encoder = cost.sources * (_sublayer_bytes(model, 2, 1, layout.tensor) + source_weights)
    decoder = cost.targets * (_sublayer_bytes(model, 3, 2, layout.tensor) + target_weights + source_weights)
    if not model.rematerialize:
        return rows * (model.encoder_layers * encoder + model.decoder_layers * decoder)
    inputs = cost.sources * model.encoder_layers + cost.targets * model.decoder_layers
    return rows * (DTYPE_BYTES[model.dtype] * model.d_model * inputs + max(encoder, decoder))


def _sublayer_bytes(model: ModelConfig, norms: int, attentions: int, tensor: int) -> int:
    """Bytes of a token in a block: heads and hidden units, which tensor divides, and arrays of the whole width.

    A norm keeps its centred and its scaled input in float32, dropout a byte, a product its input.
    """
    dtype = DTYPE_BYTES[model.dtype]
    heads = 2 * model.num_heads * model.head_dim + model.groups * (model.head_dim + model.value_width)
    divided = dtype * (attentions * heads + 2 * model.d_ff) // tensor
    return divided + norms * model.d_model * (dtype + 1 + 2 * FLOAT)


def _attention_weight_bytes(model: ModelConfig, keys: int, layout: Layout) -> int:
    """Bytes of a query's weights over the keys: in float32, and again as an operand if that is narrower."""
    if model.kernel not in STORING_KERNELS:
        return 0
    operand = DTYPE_BYTES[model.dtype] if model.dtype != "float32" else 0
    return keys * model.num_heads * (FLOAT + operand) // layout.tensor


def logit_bytes(cost: StepCost, layout: Layout) -> int:
    """Return the bytes of logits, their exponentials and gradients: by chunks on one device, all at once on a mesh."""
    positions = cost.rows // layout.row_groups * cost.targets
    parts = layout.tensor if cost.vocab_size % layout.tensor == 0 else 1
    return 3 * FLOAT * (min(positions, CHUNK) if layout.devices == 1 else positions) * cost.vocab_size // parts
