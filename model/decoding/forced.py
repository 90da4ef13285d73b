"""How likely given translations are, and how they look at their sources: teacher forcing, token by token.

B sentence · T target position · S source position · D model width
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from common.special_tokens import BOS, PAD
from model.attention_weights import decode, encode
from model.decoding.ensemble import Models, mixture
from model.decoding.next_token import log_normalizers
from model.transformer import Transformer


def token_log_probs(
    models: Models, source_tokens: Int[Array, "B S"], target_tokens: Int[Array, "B T"]
) -> Float[Array, "B T"]:
    """log P of each target token after those before it; 0 for PAD. Sources and targets end with EOS, then PAD.

    The sum over a row is the log-probability that a search gives to the same tokens, up to rounding. The vocabulary's
    logits are made for one position at a time, so that they never fill the memory.
    """
    decoded = tuple(_decode(model, source_tokens, target_tokens) for model in models)

    def at_position(position: tuple[tuple[Float[Array, "B _"], ...], Int[Array, " B"]]) -> Float[Array, " B"]:
        states, tokens = position  # the models of an ensemble may differ in width
        logits = mixture(tuple(model.logits(state) for model, state in zip(models, states, strict=True)))
        return jnp.take_along_axis(logits, tokens[:, None], axis=-1)[:, 0] - log_normalizers(logits)

    by_position = jax.lax.map(at_position, (tuple(state.swapaxes(0, 1) for state in decoded), target_tokens.T))
    return jnp.where(target_tokens == PAD, 0, by_position.T)


def _decode(model: Transformer, source_tokens: Array, target_tokens: Array) -> Float[Array, "B T D"]:
    source, target = _row(source_tokens), _row(target_tokens)
    return model(*source, _inputs(target_tokens), *target[1:])


def source_weights(
    models: Models, source_tokens: Int[Array, "B S"], target_tokens: Int[Array, "B T"]
) -> Float[Array, "B T S"]:
    """How much the step that predicts each target token takes from each source token: a soft alignment.

    The weights are those of the last decoder block but one, the mean over its heads, which align better than the last
    block's (Garg et al. 2019, section 4.1), and over the models of an ensemble.
    """
    weights = [_source_weights(model, source_tokens, target_tokens) for model in models]
    return jnp.mean(jnp.stack(weights), axis=0)


def _source_weights(model: Transformer, source_tokens: Array, target_tokens: Array) -> Float[Array, "B T S"]:
    source, target = _row(source_tokens), _row(target_tokens)
    encoded, _ = encode(model, *source)
    _, _, over_source = decode(model, _inputs(target_tokens), *target[1:], encoded, source[1])
    return over_source[max(0, len(over_source) - 2)].mean(axis=1)


def _row(tokens: Int[Array, "B T"]) -> tuple[Int[Array, "B T"], Int[Array, "B T"], Int[Array, "B T"]]:
    """Tokens, segments, positions."""
    return tokens, (tokens != PAD).astype("int32"), jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)


def _inputs(target_tokens: Int[Array, "B T"]) -> Int[Array, "B T"]:
    """What the decoder reads to predict the targets: BOS and all of them but the last."""
    return jnp.concatenate([jnp.full_like(target_tokens[:, :1], BOS), target_tokens[:, :-1]], axis=1)
