"""Looking inside: the attention weights of every layer and head, for one sentence and a given translation.

The walk goes through the blocks of ``model/transformer.py`` sublayer by sublayer and asks each attention for its
weights on the way. Nothing is stored in the model.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from model.positions import Order
from model.transformer import DecoderBlock, EncoderBlock, Transformer


class AttentionWeights(NamedTuple):
    """Float32 weights, of which each query's sum to one. The encoder and the decoder have an L of their own."""

    encoder: Float[Array, "L N S S"]
    decoder: Float[Array, "L N T T"]
    encoder_decoder: Float[Array, "L N T S"]


@jax.jit
def attention_weights(
    model: Transformer, source_tokens: Int[Array, " S"], target_inputs: Int[Array, " T"]
) -> AttentionWeights:
    """The weights of one sentence, which ends with EOS, and its translation, which begins with BOS.

    Teacher-forced: query t of the decoder sees ``target_inputs[: t + 1]`` and predicts the token that follows.
    """
    source, target = _row(source_tokens), _row(target_inputs)
    encoded, encoder = encode(model, *source)
    _, decoder, encoder_decoder = decode(model, *target, encoded, source[1])
    return AttentionWeights(encoder[:, 0], decoder[:, 0], encoder_decoder[:, 0])


def _row(tokens: Int[Array, " T"]) -> tuple[Int[Array, "1 T"], Int[Array, "1 T"], Int[Array, "1 T"]]:
    """A batch of one sentence: tokens, segments, positions."""
    return tokens[None], jnp.ones_like(tokens)[None], jnp.arange(tokens.size)[None]


def encode(
    model: Transformer,
    source_tokens: Int[Array, "B S"],
    source_segments: Int[Array, "B S"],
    source_positions: Int[Array, "B S"],
) -> tuple[Float[Array, "B S D"], Float[Array, "L B N S S"]]:
    """``Transformer.encode`` without dropout, and the weights of its blocks."""
    x, weights = model.embedding(source_tokens, source_positions, None), []
    order = model.order(source_positions, source_positions, causal=False)
    for block in model.encoder:
        x, block_weights = encoder_block(block, x, source_segments, order)
        weights.append(block_weights)
    return model.final_norms[0](x) if model.final_norms else x, jnp.stack(weights)


def decode(
    model: Transformer,
    target_inputs: Int[Array, "B T"],
    target_segments: Int[Array, "B T"],
    target_positions: Int[Array, "B T"],
    encoded: Float[Array, "B S D"],
    source_segments: Int[Array, "B S"],
) -> tuple[Float[Array, "B T D"], Float[Array, "L B N T T"], Float[Array, "L B N T S"]]:
    """``Transformer.decode`` without dropout, and the weights of its blocks over the past and over the source."""
    x, weights = model.embedding(target_inputs, target_positions, None), []
    order = model.order(target_positions, target_positions, causal=True)
    for block in model.decoder:
        x, *block_weights = decoder_block(block, x, encoded, target_segments, source_segments, order)
        weights.append(block_weights)
    over_past, over_source = map(jnp.stack, zip(*weights, strict=True))
    return model.final_norms[1](x) if model.final_norms else x, over_past, over_source


def encoder_block(
    block: EncoderBlock, x: Float[Array, "B S D"], source_segments: Int[Array, "B S"], order: Order
) -> tuple[Float[Array, "B S D"], Float[Array, "B N S S"]]:
    """An encoder block without dropout, and the weights of its self-attention."""
    segments: dict[str, Any] = {"query_segments": source_segments, "key_segments": source_segments}

    def attend_to_source(x: Array) -> Array:
        return block.self_attention(x, x, **segments, order=order)

    entered = block.residuals[0].enter(x)
    key, _ = block.self_attention.keys_and_values(entered, order)
    weights = block.self_attention.weights(entered, key, **segments, order=order)
    x = block.residuals[0](x, attend_to_source, None)
    return block.residuals[1](x, block.feed_forward, None), weights


def decoder_block(
    block: DecoderBlock,
    x: Float[Array, "B T D"],
    encoded: Float[Array, "B S D"],
    target_segments: Int[Array, "B T"],
    source_segments: Int[Array, "B S"],
    order: Order,
) -> tuple[Float[Array, "B T D"], Float[Array, "B N T T"], Float[Array, "B N T S"]]:
    """A decoder block without dropout, and the weights of its self-attention and its encoder-decoder attention."""
    past: dict[str, Any] = {"query_segments": target_segments, "key_segments": target_segments}
    source: dict[str, Any] = {"query_segments": target_segments, "key_segments": source_segments}

    def attend_to_past(x: Array) -> Array:
        return block.self_attention(x, x, **past, causal=True, order=order)

    def attend_to_source(x: Array) -> Array:
        return block.cross_attention(x, encoded, **source)

    entered = block.residuals[0].enter(x)
    past_key, _ = block.self_attention.keys_and_values(entered, order)
    over_past = block.self_attention.weights(entered, past_key, **past, causal=True, order=order)
    x = block.residuals[0](x, attend_to_past, None)
    source_key, _ = block.cross_attention.keys_and_values(encoded)
    over_source = block.cross_attention.weights(block.residuals[1].enter(x), source_key, **source)
    x = block.residuals[1](x, attend_to_source, None)
    return block.residuals[2](x, block.feed_forward, None), over_past, over_source
