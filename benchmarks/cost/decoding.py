"""What it costs to decode random sentences, by arithmetic: the same work for every engine.

B batch row · S source position · K beam · V vocabulary
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from benchmarks.cost import products
from common.special_tokens import EOS
from model.config import ModelConfig


@dataclass(frozen=True)
class DecodingCost:
    """``batch`` random sentences of ``sources`` tokens; every engine generates exactly ``length`` tokens for each.

    Engines get random weights in the dimensions of ``model``: values do not change the time.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    vocab_size: int = 8000
    batch: int = 128
    sources: int = 12
    length: int = 16
    threads: int = 2  # of a CPU

    def __str__(self) -> str:
        return f"{self.batch} sentences of {self.sources} tokens to {self.length}"

    def source_tokens(self) -> Int[np.ndarray, "B S"]:
        """Return the sentences: full rows of ordinary tokens."""
        generator = np.random.default_rng(0)
        return generator.integers(EOS + 1, self.vocab_size, (self.batch, self.sources), np.int32)

    def flops(self, beam_size: int) -> int:
        """Return the operations of all matrix products for one sentence: a multiplication and an addition each.

        The encoder runs once; each decoder layer projects the source to keys and values once. Each of the K beams then
        pays for its tokens: projections, feed-forward network, the source, all earlier tokens, and the vocabulary.
        """
        model = self.model
        source = self.sources * model.decoder_layers * products.key_and_value(model)
        past = self.length * (self.length + 1) // 2
        layer = self.length * products.decoder_token(model)
        layer += products.attention(model, self.length * self.sources + past)
        beam = model.decoder_layers * layer + self.length * model.d_model * self.vocab_size
        return 2 * (products.encoder(model, self.sources) + source + beam_size * beam)
