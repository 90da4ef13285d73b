"""MarianMT of transformers: the Transformer of Vaswani et al. (2017), post-norm, in given dimensions."""

from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.cost.operations import DecodingCost, StepCost
from benchmarks.peers.pytorch import DTYPES, find_device, smoothed_loss
from common.special_tokens import BOS, EOS, PAD
from model.config import ModelConfig
from training.config import TrainingConfig


def build_marian(model: ModelConfig, vocab_size: int, positions: int, **options: Any) -> MarianMTModel:
    """Return a model with random weights; ``options`` of MarianConfig name at least the special tokens."""
    if model.num_heads * model.head_dim != model.d_model:
        raise ValueError("MarianMT has heads of width d_model / num_heads only")
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=model.d_model,
        encoder_layers=model.encoder_layers,
        decoder_layers=model.decoder_layers,
        encoder_attention_heads=model.num_heads,
        decoder_attention_heads=model.num_heads,
        encoder_ffn_dim=model.d_ff,
        decoder_ffn_dim=model.d_ff,
        max_position_embeddings=positions,
        activation_function="relu",
        scale_embedding=True,
        forced_eos_token_id=None,  # otherwise the last token is EOS whatever was found
        **options,
    )
    return MarianMTModel(config)


class MarianLoss(torch.nn.Module):  # type: ignore[misc]
    """MarianMT as a function of a batch to its loss."""

    def __init__(self, cost: StepCost, training: TrainingConfig):
        super().__init__()
        tokens = {"pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": BOS, "decoder_start_token_id": BOS}
        options = {"dropout": cost.model.dropout, "use_cache": False}
        positions = max(cost.sources, cost.targets)
        self.marian = build_marian(cost.model, cost.vocab_size, positions, **tokens, **options).train()
        self.smoothing = training.label_smoothing

    def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
        logits = self.marian(input_ids=source_tokens, decoder_input_ids=target_inputs).logits
        return smoothed_loss(logits, target_labels, self.smoothing)


def build_for_decoding(cost: DecodingCost) -> MarianMTModel:
    """Return a model whose last row, beyond the vocabulary, is the padding that decoding starts from."""
    padding = cost.vocab_size
    tokens = {"eos_token_id": 0, "pad_token_id": padding, "decoder_start_token_id": padding, "bos_token_id": None}
    return build_marian(cost.model, cost.vocab_size + 1, max(cost.sources, cost.length + 1), **tokens).eval()


class MarianSearch:
    """``generate`` of transformers: beam size → tokens of each sentence."""

    def __init__(self, cost: DecodingCost):
        torch.set_num_threads(cost.threads)
        self.model = build_for_decoding(cost).to(find_device(), DTYPES[cost.model.dtype])
        self.sources = torch.from_numpy(cost.source_tokens()).long().to(find_device())
        self.options = {"min_new_tokens": cost.length, "max_new_tokens": cost.length, "do_sample": False}

    def __call__(self, beam_size: int) -> list[list[int]]:
        mask = torch.ones_like(self.sources)
        with torch.inference_mode():
            tokens = self.model.generate(self.sources, attention_mask=mask, num_beams=beam_size, **self.options)
        return [row[1:] for row in tokens.tolist()]  # the first token is the padding that decoding starts from
