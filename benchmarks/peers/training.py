"""PyTorch models that train beside ours: MarianMT of transformers, and torch's own nn.Transformer.

They are what ``pip install -e '.[bench]'`` brings, never dependencies, and are imported only where they take part.
B batch row · S source position · T target position · D model width
"""

from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.cost.step import StepWork
from benchmarks.turns import peak_of_process, torch_if_installed
from common.special_tokens import BOS, EOS, PAD
from data.batches.packing import Batch
from model.config import ModelConfig
from model.positions import sinusoidal_positions
from training.config import TrainingConfig

PEERS = ("marian", "torch", "torch-bfloat16")
GPU_PEERS = ("marian-bfloat16", "torch-bfloat16")
NEEDS = ("torch", "transformers")


def refusal_of_peer(name: str, work: StepWork) -> str:
    """Why a peer cannot take part, as the end of a sentence; nothing if it can."""
    if missing := [package for package in NEEDS if find_spec(package) is None]:
        return f"needs {', '.join(missing)}: pip install -e '.[bench]'"
    if jax.default_backend() == "gpu" and not torch_if_installed().cuda.is_available():
        return "sees no GPU"
    if work.sentences > 1:
        return "takes rows of one sentence only"
    return "" if is_plain(work.model) else "is compared with plain multi-head attention and sinusoidal positions only"


def is_plain(model: ModelConfig) -> bool:
    """Whether it is the Transformer of Vaswani et al., which is what the peers are."""
    widths = (model.head_dim * model.num_heads, model.value_width, model.groups)
    usual = (model.score, model.positions, model.activation) == ("scaled_dot_product", "sinusoidal", "relu")
    return usual and widths == (model.d_model, model.head_dim, model.num_heads) and not model.attention_dropout


class Peer:
    """A training step of one of ``PEERS`` on the fixed batch, and what it took."""

    def __init__(self, name: str, work: StepWork, training: TrainingConfig):
        torch = torch_if_installed()
        self.device = torch.device("cuda" if jax.default_backend() == "gpu" else "cpu")
        self.model = (marian_model if name.startswith("marian") else torch_model)(work, training).to(self.device)
        self.take_step = step_of(self.model, training, narrow=name.endswith("bfloat16"))
        self.batch = on_device(work.batch(), self.device)
        self()

    def __call__(self) -> "Pending":
        self.take_step(self.batch)
        return Pending(self.device)

    def figures(self) -> dict[str, Any]:
        """What this project's own step tells too; nothing is compiled."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters() if parameter.requires_grad)
        return {"compile_seconds": None, "peak_bytes": self.peak(), "parameters": parameters}

    def peak(self) -> int | None:
        if self.device.type == "cpu":
            return peak_of_process()
        return int(torch_if_installed().cuda.max_memory_reserved())


class Pending:
    """What has been asked of the device, to be waited for as JAX waits for its arrays."""

    def __init__(self, device: Any):
        self.device = device

    def block_until_ready(self) -> None:
        if self.device.type == "cuda":
            torch_if_installed().cuda.synchronize()


def on_device(batch: Batch, device: Any) -> dict[str, Any]:
    torch = torch_if_installed()
    names = ("source_tokens", "target_inputs", "target_labels")
    return {name: torch.from_numpy(batch._asdict()[name]).long().to(device) for name in names}


def step_of(model: Any, training: TrainingConfig, narrow: bool) -> Callable[[dict[str, Any]], None]:
    """A whole update: forward, loss, backward, clipping, Adam. With ``narrow`` under autocast to bfloat16."""
    torch = torch_if_installed()
    rates: dict[str, Any] = {"lr": training.learning_rate, "betas": (training.beta1, training.beta2)}
    optimizer = torch.optim.Adam(model.parameters(), eps=training.epsilon, fused=True, **rates)
    device = next(model.parameters()).device.type

    def take_step(batch: dict[str, Any]) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16) if narrow else nullcontext():
            model(**batch).backward()
        if training.clip_norm:
            torch.nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm)
        optimizer.step()

    return take_step


def smoothed_loss(logits: Any, labels: Any, smoothing: float) -> Any:
    """The mean over all tokens."""
    cross_entropy = torch_if_installed().nn.functional.cross_entropy
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=smoothing)


def marian_model(work: StepWork, training: TrainingConfig) -> Any:
    """``(batch) → loss`` of a MarianMT of these dimensions. It is post-norm, whatever ours is."""
    from transformers import MarianConfig, MarianMTModel

    torch, model = torch_if_installed(), work.model
    config = MarianConfig(
        vocab_size=work.vocab_size,
        d_model=model.d_model,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_attention_heads=model.num_heads,
        decoder_attention_heads=model.num_heads,
        encoder_ffn_dim=model.d_ff,
        decoder_ffn_dim=model.d_ff,
        max_position_embeddings=max(work.sources, work.targets),
        activation_function="relu",
        dropout=model.dropout,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=BOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        use_cache=False,
    )

    class Marian(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.marian = MarianMTModel(config).train()

        def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
            logits = self.marian(input_ids=source_tokens, decoder_input_ids=target_inputs).logits
            return smoothed_loss(logits, target_labels, training.label_smoothing)

    return Marian()


def torch_model(work: StepWork, training: TrainingConfig) -> Any:
    """``(batch) → loss`` of an nn.Transformer of these dimensions, with one table for both sides and the logits."""
    torch, model = torch_if_installed(), work.model

    class Torch(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(work.vocab_size, model.d_model)
            torch.nn.init.normal_(self.table.weight, std=model.d_model**-0.5)
            self.dropout = torch.nn.Dropout(model.dropout)
            self.transformer = bare_transformer(model)
            self.register_buffer("codes", position_codes(max(work.sources, work.targets), model.d_model))
            hidden = torch.nn.Transformer.generate_square_subsequent_mask(work.targets)
            self.register_buffer("hidden", hidden)

        def embed(self, tokens: Any) -> Any:
            return self.dropout(self.table(tokens) * model.d_model**0.5 + self.codes[: tokens.shape[1]])

        def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
            source, target = self.embed(source_tokens), self.embed(target_inputs)
            decoded = self.transformer(source, target, tgt_mask=self.hidden, tgt_is_causal=True)
            logits = torch.nn.functional.linear(decoded, self.table.weight)
            return smoothed_loss(logits, target_labels, training.label_smoothing)

    return Torch().train()


def bare_transformer(model: ModelConfig) -> Any:
    """nn.Transformer with the dropout that ours has too: not on weights of attention, nor inside the feed-forward."""
    torch = torch_if_installed()
    transformer = torch.nn.Transformer(
        model.d_model,
        model.num_heads,
        model.encoder_layers,
        model.decoder_layers,
        model.d_ff,
        dropout=model.dropout,
        batch_first=True,
        norm_first=model.norm == "pre",
    )
    for layer in [*transformer.encoder.layers, *transformer.decoder.layers]:
        layer.dropout.p = layer.self_attn.dropout = 0.0
    for layer in transformer.decoder.layers:
        layer.multihead_attn.dropout = 0.0
    return transformer


def position_codes(length: int, width: int) -> Any:
    """Float32[T D]."""
    codes = sinusoidal_positions(jnp.arange(length)[None], width)[0]
    return torch_if_installed().from_numpy(np.array(codes))
