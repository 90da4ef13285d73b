"""Looking inside: the attention weights of every layer and head, for one sentence and one translation of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from model.transformer import Tokens, Transformer


class AttentionWeights(NamedTuple):
    """Float32 weights; those of a query sum to one. L is the number of layers of the encoder, or of the decoder."""

    encoder: Float[Array, "L N S S"]
    decoder: Float[Array, "L N T T"]
    encoder_decoder: Float[Array, "L N T S"]


@jax.jit
def compute_attention_weights(
    model: Transformer, source: Int[Array, " S"], target_inputs: Int[Array, " T"]
) -> AttentionWeights:
    """The weights for one source, which ends with EOS, and one translation, which begins with BOS.

    Teacher forcing: query t of the decoder sees ``target_inputs[: t + 1]`` and predicts the next token.
    """
    source_tokens, target_tokens = Tokens.one_per_row(source[None]), Tokens.one_per_row(target_inputs[None])
    encoded, encoder = model.encode(source_tokens)
    _, decoder = model.decode(target_tokens, encoded, source_tokens.segments)
    return AttentionWeights(
        encoder=jnp.stack([weights()[0] for weights in encoder]),
        decoder=jnp.stack([weights.past()[0] for weights in decoder]),
        encoder_decoder=jnp.stack([weights.source()[0] for weights in decoder]),
    )
