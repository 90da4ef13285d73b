"""MarianMT from transformers: the post-norm Transformer of Vaswani et al. (2017), with given dimensions."""

from dataclasses import replace
from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.cost.operations import StepCost
from benchmarks.peers.pytorch import smoothed_loss
from exports.transformers import make_config
from training.config import TrainingConfig


class MarianLoss(torch.nn.Module):  # type: ignore[misc]
    """MarianMT with random weights and the dimensions of a post-norm export: batch → loss."""

    def __init__(self, cost: StepCost, training: TrainingConfig):
        super().__init__()
        sizes = make_config(replace(cost.model, norm="post"), cost.vocab_size)
        sizes |= {"max_position_embeddings": max(cost.sources, cost.targets), "use_cache": False}
        self.marian = MarianMTModel(MarianConfig(**sizes)).train()
        self.smoothing = training.label_smoothing

    def forward(self, source_tokens: Any, target_inputs: Any, target_labels: Any) -> Any:
        logits = self.marian(input_ids=source_tokens, decoder_input_ids=target_inputs).logits
        return smoothed_loss(logits, target_labels, self.smoothing)
