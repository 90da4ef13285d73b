"""MarianMT of transformers: the Transformer of Vaswani et al. (2017), post-norm, in given dimensions."""

from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.cost.operations import StepCost
from benchmarks.peers.pytorch import smoothed_loss
from common.special_tokens import BOS, EOS, PAD
from training.config import TrainingConfig


class MarianLoss(torch.nn.Module):  # type: ignore[misc]
    """MarianMT with random weights: batch → loss. Its heads have the width d_model / num_heads, as its peers have."""

    def __init__(self, cost: StepCost, training: TrainingConfig):
        super().__init__()
        model, self.smoothing = cost.model, training.label_smoothing
        config = MarianConfig(
            vocab_size=cost.vocab_size,
            d_model=model.d_model,
            encoder_layers=model.encoder_layers,
            decoder_layers=model.decoder_layers,
            encoder_attention_heads=model.num_heads,
            decoder_attention_heads=model.num_heads,
            encoder_ffn_dim=model.d_ff,
            decoder_ffn_dim=model.d_ff,
            max_position_embeddings=max(cost.sources, cost.targets),
            activation_function="relu",
            scale_embedding=True,
            dropout=model.dropout,
            use_cache=False,
            pad_token_id=PAD,
            eos_token_id=EOS,
            bos_token_id=BOS,
            decoder_start_token_id=BOS,
        )
        self.marian = MarianMTModel(config).train()

    def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
        logits = self.marian(input_ids=source_tokens, decoder_input_ids=target_inputs).logits
        return smoothed_loss(logits, target_labels, self.smoothing)
