"""How much each source token contributes to a target token, by several methods.

L layer · N query head · G key/value head · T target position · S source position · D model width
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from model.decoding.forced import AttentionWeights, compute_attention_weights, decoder_inputs
from model.layers import MultiHeadAttention
from model.transformer import Tokens, Transformer


class Attributions(NamedTuple):
    """What each source token contributes to the prediction of each target token."""

    weights: Float[Array, "L N T S"]  # of encoder-decoder attention
    norms: Float[Array, "L T S"]  # of the vector that a layer's heads together add for a source token
    rollout: Float[Array, "T S"]
    gradient: Float[Array, "T S"]  # times input


@jax.jit
def attribute(model: Transformer, source: Int[Array, " S"], target: Int[Array, " T"]) -> Attributions:
    """Attribute each token of a translation to its source. Both end with EOS, then PAD.

    Norms follow Kobayashi et al. (2020, section 3): the norm of the sum over heads of weight times value times output
    projection.
    """
    sources, inputs = Tokens.one_per_row(source[None]), decoder_inputs(target[None])
    weights = compute_attention_weights(model, source, inputs.ids[0])
    encoded = model.encode(sources)
    vectors = jnp.stack([vectors_of_heads(block.cross_attention, encoded) for block in model.decoder])
    cross = weights.encoder_decoder
    norms = jnp.linalg.norm(jnp.einsum("LNTS,LNSD->LTSD", cross, vectors), axis=-1)
    return Attributions(cross, norms, rollout(weights), gradient_times_input(model, sources, inputs, target))


def vectors_of_heads(attention: MultiHeadAttention, encoded: Float[Array, "1 S E"]) -> Float[Array, "N S D"]:
    """What each head would add to the output if it attended to only one source token."""
    value = attention.keys_and_values(encoded).value[0]
    heads = attention.config.num_heads
    projection = attention.output.kernel[...].reshape(heads, value.shape[-1], -1)
    return jnp.einsum("NSU,NUD->NSD", jnp.repeat(value, heads // len(value), axis=0), projection)


def rollout(weights: AttentionWeights) -> Float[Array, "T S"]:
    """Attention followed through all layers down to the source (Abnar and Zuidema 2020, section 3).

    Half of a layer's output comes from its residual connection, and half from the mean of its heads. What the decoder
    gets from its own past is not counted.
    """
    encoder, decoder, cross = (each.mean(axis=1) for each in weights)
    seen = jnp.eye(encoder.shape[-1])
    for layer in encoder:
        seen = (seen + layer @ seen) / 2
    found = jnp.zeros(cross.shape[1:])
    for past, source in zip(decoder, cross, strict=True):
        found = (found + past @ found) / 2
        found = (found + source @ seen) / 2
    return found


def gradient_times_input(
    model: Transformer, source: Tokens, inputs: Tokens, target: Int[Array, " T"]
) -> Float[Array, "T S"]:
    """The gradient of each target token's log-probability by the embedding of a source token, times that embedding.

    To first order, this is the log-probability lost if the embedding shrinks to zero (Ancona et al. 2018, section 2).
    """

    def log_probs(embedded: Float[Array, "1 S D"]) -> Float[Array, " T"]:
        decoded = model.decode(inputs, model.encode(source, embedded=embedded), source.segments)
        return jnp.take_along_axis(jax.nn.log_softmax(model.logits(decoded[0])), target[:, None], axis=1)[:, 0]

    embedded = model.embedding(source.ids, source.positions, None)
    return jnp.einsum("TSD,SD->TS", jax.jacrev(log_probs)(embedded)[:, 0], embedded[0])
