"""PyTorch: plain products, attention, nn.Transformer, and the training step that it shares with MarianMT.

B batch row · S source position · T target position · N query head · H width of a query/key head
D model width · V vocabulary
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from jaxtyping import Float32
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention

from benchmarks.cost.operations import StepCost
from benchmarks.machine import Call, peak_memory
from benchmarks.peers import device_name
from common.errors import UserError
from model.config import ModelConfig
from model.positions import sinusoidal_positions
from training.config import TrainingConfig

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def find_device() -> torch.device:
    """Return the kind of device that JAX computes on; UserError if PyTorch does not see it."""
    if device_name() == "cuda" and not torch.cuda.is_available():
        raise UserError("sees no GPU")
    return torch.device(device_name())


def matrix_product(values: Float32[np.ndarray, "n n"], dtype: str) -> Call:
    """Return the product of a matrix with itself, with operands in ``dtype``."""
    matrix = torch.from_numpy(values).to(DTYPES[dtype])
    return partial(torch.mm, matrix, matrix)


def attention_calls(arrays: Sequence[Float32[np.ndarray, "B N T H"]], *, is_causal: bool) -> dict[str, Call]:
    """Return attention for (gradient of the output, query, key, value): forward alone, and with all gradients."""
    attend = partial(scaled_dot_product_attention, is_causal=is_causal)
    cotangent, *inputs = (torch.from_numpy(array) for array in arrays)
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]

    def gradients() -> tuple[Any, ...]:
        output = attend(*leaves)
        return output.detach(), *torch.autograd.grad(output, leaves, cotangent)

    return {"forward": partial(attend, *inputs), "gradients": gradients}


class TrainingStep:
    """Updates of a PyTorch model on a fixed batch: forward, loss, backward, clipping, Adam."""

    def __init__(self, loss: Any, cost: StepCost, training: TrainingConfig, *, autocast: bool):
        """``autocast`` computes in bfloat16 where PyTorch's autocast does."""
        self.device, self.autocast, self.clip_norm = find_device(), autocast, training.clip_norm
        self.loss = loss.to(self.device)
        options = {"lr": training.learning_rate, "betas": (training.beta1, training.beta2), "eps": training.epsilon}
        self.optimizer = torch.optim.Adam(self.loss.parameters(), **options, fused=True)
        batch, names = cost.batch()._asdict(), ("source_tokens", "target_inputs", "target_labels")
        self.batch = {name: torch.from_numpy(batch[name]).long().to(self.device) for name in names}
        self()

    def __call__(self) -> "TrainingStep":
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, dtype=torch.bfloat16) if self.autocast else nullcontext():
            self.loss(**self.batch).backward()
        if self.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.loss.parameters(), self.clip_norm)
        self.optimizer.step()
        return self

    def block_until_ready(self) -> None:
        """Wait for the device, as for a JAX array."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def count_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.loss.parameters() if parameter.requires_grad)

    def peak_memory(self) -> int | None:
        """Return the peak memory in bytes: on a GPU what PyTorch reserved, on a CPU that of the whole process."""
        return int(torch.cuda.max_memory_reserved()) if self.device.type == "cuda" else peak_memory()


def smoothed_loss(logits: Any, labels: Any, smoothing: float) -> Any:
    """Return the mean cross-entropy over all tokens of logits B T V and labels B T."""
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing)


class TransformerLoss(torch.nn.Module):  # type: ignore[misc]
    """nn.Transformer with given dimensions and one table for both sides and the logits: batch → loss."""

    def __init__(self, cost: StepCost, training: TrainingConfig):
        super().__init__()
        model = cost.model
        self.scale, self.smoothing = model.d_model**0.5, training.label_smoothing
        self.table = torch.nn.Embedding(cost.vocab_size, model.d_model)
        torch.nn.init.normal_(self.table.weight, std=model.d_model**-0.5)
        self.dropout = torch.nn.Dropout(model.dropout)
        self.transformer = build_transformer(model)
        codes = sinusoidal_positions(jnp.arange(max(cost.sources, cost.targets))[None], model.d_model)[0]
        self.register_buffer("codes", torch.from_numpy(np.array(codes)))
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(cost.targets))

    def embed(self, tokens: Any) -> Any:
        """Return scaled embeddings with positions and dropout, B T D."""
        return self.dropout(self.table(tokens) * self.scale + self.codes[: tokens.shape[1]])

    def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
        source, target = self.embed(source_tokens), self.embed(target_inputs)
        decoded = self.transformer(source, target, tgt_mask=self.mask, tgt_is_causal=True)
        return smoothed_loss(linear(decoded, self.table.weight), target_labels, self.smoothing)


def build_transformer(model: ModelConfig) -> torch.nn.Transformer:
    """Return an nn.Transformer with this project's dropout: none on attention weights or in the feed-forward layers."""
    sizes = model.d_model, model.num_heads, model.encoder_layers, model.decoder_layers, model.d_ff
    transformer = torch.nn.Transformer(*sizes, dropout=model.dropout, batch_first=True, norm_first=model.final_norm)
    for layer in [*transformer.encoder.layers, *transformer.decoder.layers]:
        layer.dropout.p = layer.self_attn.dropout = 0.0
    for layer in transformer.decoder.layers:
        layer.multihead_attn.dropout = 0.0
    return transformer
