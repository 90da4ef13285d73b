"""The work that decoding engines do when their speed is compared, and what it costs by arithmetic.

S source position · T target position · K beam · D model width · F feed-forward width · V vocabulary · L layer
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from model.config import ModelConfig

FIRST_PIECE = 4  # the ids before it are PAD, UNK, BOS and EOS


@dataclass(frozen=True)
class Work:
    """Random sentences of one length, and exactly so many tokens for each: alike for all, whatever their weights say.

    Every engine gets the dimensions of ``model`` and random weights; what they are costs no time.
    """

    model: ModelConfig = field(default_factory=ModelConfig)
    vocab_size: int = 8000
    batch: int = 128
    sources: int = 12  # tokens of a sentence
    length: int = 16  # tokens generated for it
    threads: int = 2  # of a CPU

    def source_tokens(self) -> Int[np.ndarray, "B S"]:
        """The sentences, none of them padded."""
        numbers = np.random.default_rng(0)
        return numbers.integers(FIRST_PIECE, self.vocab_size, (self.batch, self.sources), np.int32)

    def flops(self, beam_size: int) -> int:
        """Operations of the matrix products for one sentence: a multiplication and an addition each."""
        return 2 * (self._encoder_products() + beam_size * self._decoder_products())

    def _encoder_products(self) -> int:
        """Multiplications for a sentence, whatever its beams: the encoder, and what the decoder reads of it.

        A token meets four projections in each layer, two matrices of the feed-forward network, and S keys and values;
        of its encoding each decoder layer makes a key and a value.
        """
        model, inner = self.model, self.model.num_heads * self.model.head_dim
        layer = 4 * model.d_model * inner + 2 * model.d_model * model.d_ff + 2 * self.sources * inner
        cross = 2 * model.d_model * inner
        return self.sources * (model.encoder_layers * layer + model.decoder_layers * cross)

    def _decoder_products(self) -> int:
        """Multiplications for one beam.

        A token meets six projections in each layer, four of self-attention and two of encoder-decoder attention, whose
        keys and values are there already; the feed-forward network; the source; its past, T (T + 1) / 2 positions in
        all; and once the whole vocabulary.
        """
        model, inner = self.model, self.model.num_heads * self.model.head_dim
        layer = 6 * model.d_model * inner + 2 * model.d_model * model.d_ff + 2 * self.sources * inner
        past = 2 * inner * self.length * (self.length + 1) // 2
        token = model.decoder_layers * layer + model.d_model * self.vocab_size
        return self.length * token + model.decoder_layers * past
