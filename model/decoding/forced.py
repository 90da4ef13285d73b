"""Forced decoding: the log-probabilities of existing translations, token by token, and their alignment to sources."""

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
    """log P of each target token after those before it; 0 for PAD. Sources and targets end with EOS, then PAD.

    The sum over a row is the log-probability that a search gives to the same tokens, up to rounding. Logits are
    computed for one position at a time, to bound memory.
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

    The weights are those of the last decoder block but one, whose heads align better than the last block's (Garg et al.
    2019, section 4.1), averaged over heads and over the models of an ensemble.
    """
    source, target = Tokens.one_per_row(source_tokens), decoder_inputs(target_tokens)
    return jnp.mean(jnp.stack([_alignment_weights(model, source, target) for model in models]), axis=0)


def _alignment_weights(model: Transformer, source: Tokens, target: Tokens) -> Float[Array, "B T S"]:
    encoded, _ = model.encode(source)
    _, weights = model.decode(target, encoded, source.segments)
    return weights[max(0, len(weights) - 2)].source().mean(axis=1)


def decoder_inputs(target_tokens: Int[Array, "B T"]) -> Tokens:
    """What the decoder reads to predict the targets: BOS and all of them but the last."""
    inputs = jnp.concatenate([jnp.full_like(target_tokens[:, :1], BOS), target_tokens[:, :-1]], axis=1)
    return Tokens.one_per_row(target_tokens)._replace(ids=inputs)
