"""Forced decoding of existing translations: their log-probabilities, alignment to sources, and attention weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from common.special_tokens import BOS, PAD
from model.decoding.ensemble import Models, mixture
from model.decoding.next_token import log_normalizers
from model.transformer import Tokens, Transformer


@jax.jit
def token_log_probs(
    models: Models, source_tokens: Int[Array, "B S"], target_tokens: Int[Array, "B T"]
) -> Float[Array, "B T"]:
    """log P of each target token given the ones before it; 0 for PAD. Sources and targets end with EOS, then PAD.

    The sum over a row is the log-probability that a search assigns to the same tokens, up to rounding. Logits are
    computed one position at a time, to bound memory.
    """
    source, target = Tokens.one_per_row(source_tokens), decoder_inputs(target_tokens)
    decoded = tuple(model(source, target) for model in models)

    def at_position(position: tuple[tuple[Float[Array, "B _"], ...], Int[Array, " B"]]) -> Float[Array, " B"]:
        states, tokens = position  # the models of an ensemble may differ in width
        logits = mixture(tuple(model.logits(state) for model, state in zip(models, states, strict=True)))
        return jnp.take_along_axis(logits, tokens[:, None], axis=-1)[:, 0] - log_normalizers(logits)

    by_position = jax.lax.map(at_position, (tuple(state.swapaxes(0, 1) for state in decoded), target_tokens.T))
    return jnp.where(target_tokens == PAD, 0, by_position.T)


@jax.jit
def alignment_weights(
    models: Models, source_tokens: Int[Array, "B S"], target_tokens: Int[Array, "B T"]
) -> Float[Array, "B T S"]:
    """A soft alignment: how much the step that predicts a target token attends to each source token.

    The weights come from the next-to-last decoder block, averaged over heads and over the models of an ensemble. With
    six blocks, this block aligns better than the last one (Garg et al. 2019, section 4.1). With three, the two blocks
    find the source word that matters most equally often, to within 2 in 100 (docs/findings.md).
    """
    source, target = Tokens.one_per_row(source_tokens), decoder_inputs(target_tokens)

    def weights_of(model: Transformer) -> Float[Array, "B T S"]:
        collected: list[Array] = []
        model.decode(target, model.encode(source), source.segments, weights=collected)
        over_source = collected[1::2]
        return over_source[max(0, len(over_source) - 2)].mean(axis=1)

    return jnp.mean(jnp.stack([weights_of(model) for model in models]), axis=0)


def decoder_inputs(target_tokens: Int[Array, "B T"]) -> Tokens:
    """What the decoder reads to predict the targets: BOS, then all target tokens except the last."""
    inputs = jnp.concatenate([jnp.full_like(target_tokens[:, :1], BOS), target_tokens[:, :-1]], axis=1)
    return Tokens.one_per_row(target_tokens)._replace(ids=inputs)


class AttentionWeights(NamedTuple):
    """Float32 weights; each query's sum to one. L is the number of layers of the encoder, or of the decoder."""

    encoder: Float[Array, "L N S S"]
    decoder: Float[Array, "L N T T"]
    encoder_decoder: Float[Array, "L N T S"]


@jax.jit
def compute_attention_weights(
    model: Transformer, source: Int[Array, " S"], target_inputs: Int[Array, " T"]
) -> AttentionWeights:
    """The attention weights for one source, which ends with EOS, and one translation, which begins with BOS.

    Teacher forcing: query t of the decoder sees ``target_inputs[: t + 1]`` and predicts the next token.
    """
    source_tokens, target_tokens = Tokens.one_per_row(source[None]), Tokens.one_per_row(target_inputs[None])
    encoder: list[Array] = []
    decoder: list[Array] = []
    encoded = model.encode(source_tokens, weights=encoder)
    model.decode(target_tokens, encoded, source_tokens.segments, weights=decoder)
    return AttentionWeights(*(jnp.concatenate(weights) for weights in (encoder, decoder[::2], decoder[1::2])))
