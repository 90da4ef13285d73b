"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int

from model.config import ModelConfig
from model.decoding.cache import Cache, lineage_bias, own_places, write
from model.layers import DropoutKey, Embedding, FeedForward, LayerNorm, MultiHeadAttention, Residual, split_key
from model.loss import Loss
from model.positions import Order, RelativeBias, alibi_bias

Params = dict  # nested, from names to arrays


class EncoderBlock(nnx.Module):
    """Self-attention over the source, then a feed-forward network."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.self_attention = MultiHeadAttention(config, rngs=rngs)
        self.feed_forward = FeedForward(config, rngs=rngs)
        self.residuals = nnx.List([Residual(config) for _ in range(2)])

    def __call__(
        self, x: Float[Array, "B S D"], source_segments: Int[Array, "B S"], order: Order, dropout_key: DropoutKey
    ) -> Float[Array, "B S D"]:
        keys = split_key(dropout_key, 3)

        def attend_to_source(x: Array) -> Array:
            return self.self_attention(
                x,
                x,
                query_segments=source_segments,
                key_segments=source_segments,
                order=order,
                dropout_key=keys[2],
            )

        x = self.residuals[0](x, attend_to_source, keys[0])
        return self.residuals[1](x, self.feed_forward, keys[1])


class DecoderBlock(nnx.Module):
    """Masked self-attention over the target, attention over the encoded source, then a feed-forward network."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.self_attention = MultiHeadAttention(config, rngs=rngs)
        self.cross_attention = MultiHeadAttention(config, rngs=rngs)
        self.feed_forward = FeedForward(config, rngs=rngs)
        self.residuals = nnx.List([Residual(config) for _ in range(3)])

    def __call__(
        self,
        x: Float[Array, "B T D"],
        encoded: Float[Array, "B S D"],
        target_segments: Int[Array, "B T"],
        source_segments: Int[Array, "B S"],
        order: Order,
        dropout_key: DropoutKey,
    ) -> Float[Array, "B T D"]:
        keys = split_key(dropout_key, 5)

        def attend_to_past(x: Array) -> Array:
            return self.self_attention(
                x,
                x,
                query_segments=target_segments,
                key_segments=target_segments,
                causal=True,
                order=order,
                dropout_key=keys[3],
            )

        def attend_to_source(x: Array) -> Array:
            return self.cross_attention(
                x,
                encoded,
                query_segments=target_segments,
                key_segments=source_segments,
                dropout_key=keys[4],
            )

        x = self.residuals[0](x, attend_to_past, keys[0])
        x = self.residuals[1](x, attend_to_source, keys[1])
        return self.residuals[2](x, self.feed_forward, keys[2])

    def step(
        self, x: Float[Array, "B K D"], position: Int[Array, ""], layer: int, cache: Cache, order: Order
    ) -> tuple[Float[Array, "B K D"], Float[Array, "B N K S"], Cache]:
        """The block for the tokens at one position of every beam; between output and cache, how they saw the source.

        The beams of a sentence are queries side by side: over the keys of all of them, of which ``order`` hides what
        is not a query's own past, and over the same source.
        """
        entered = self.residuals[0].enter(x)
        cache = write(cache, layer, *self.self_attention.keys_and_values(entered, order), position)
        keys, values = cache.self_keys[layer].swapaxes(2, 3), cache.self_values[layer]
        source_keys, source_values = cache.cross_keys[layer].swapaxes(2, 3), cache.cross_values[layer]
        beams = jnp.ones(x.shape[:2], jnp.int32)
        written = jnp.arange(keys.shape[2]) < (position + 1) * x.shape[1]  # what is not is padding: segment 0
        past: dict[str, Any] = {
            "query_segments": beams,
            "key_segments": jnp.broadcast_to(written.astype(jnp.int32), (len(x), written.size)),
        }
        source: dict[str, Any] = {"query_segments": beams, "key_segments": cache.source_segments}

        def attend_to_past(x: Array) -> Array:
            return self.self_attention.attend_to(x, keys, values, order=order, **past)

        def attend_to_source(x: Array) -> Array:
            return self.cross_attention.attend_to(x, source_keys, source_values, **source)

        x = self.residuals[0](x, attend_to_past, None)
        seen = self.cross_attention.weights(self.residuals[1].enter(x), source_keys, **source)
        x = self.residuals[1](x, attend_to_source, None)
        return self.residuals[2](x, self.feed_forward, None), seen, cache


class Transformer(nnx.Module):
    """Encoder and decoder over one embedding, which also gives the logits.

    Arrays of tokens, segments and positions are as in ``data/batches/packing.py``: segment 0 is padding,
    positions restart with each segment. The results of a segment do not depend on the other segments of its row.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, *, rngs: nnx.Rngs):
        self.embedding = Embedding(config, vocab_size, rngs=rngs)
        self.encoder = nnx.List([EncoderBlock(config, rngs=rngs) for _ in range(config.encoder_layers)])
        self.decoder = nnx.List([DecoderBlock(config, rngs=rngs) for _ in range(config.decoder_layers)])
        self.final_norms = nnx.List([LayerNorm(config.d_model) for _ in range(2)] if config.norm == "pre" else [])
        if config.positions == "relative":
            self.relative_biases = nnx.List(
                [RelativeBias(config, causal=causal, rngs=rngs) for causal in (False, True)]
            )
        self.config = config

    def __call__(
        self,
        source_tokens: Int[Array, "B S"],
        source_segments: Int[Array, "B S"],
        source_positions: Int[Array, "B S"],
        target_inputs: Int[Array, "B T"],
        target_segments: Int[Array, "B T"],
        target_positions: Int[Array, "B T"],
        *,
        dropout_key: DropoutKey = None,
    ) -> Float[Array, "B T D"]:
        """The decoder's output at every target position under teacher forcing; ``logits`` turns it into scores."""
        keys = split_key(dropout_key, 2)
        encoded = self.encode(source_tokens, source_segments, source_positions, dropout_key=keys[0])
        return self.decode(
            target_inputs, target_segments, target_positions, encoded, source_segments, dropout_key=keys[1]
        )

    def encode(
        self,
        source_tokens: Int[Array, "B S"],
        source_segments: Int[Array, "B S"],
        source_positions: Int[Array, "B S"],
        *,
        dropout_key: DropoutKey = None,
    ) -> Float[Array, "B S D"]:
        """The encoder's output at every source position."""
        keys = split_key(dropout_key, len(self.encoder) + 1)
        x = self.embedding(source_tokens, source_positions, keys[-1])
        order = self.order(source_positions, source_positions, causal=False)
        for block, key in zip(self.encoder, keys, strict=False):
            x = self._kept(block)(x, source_segments, order, key)
        return self.final_norms[0](x) if self.final_norms else x

    def decode(
        self,
        target_inputs: Int[Array, "B T"],
        target_segments: Int[Array, "B T"],
        target_positions: Int[Array, "B T"],
        encoded: Float[Array, "B S D"],
        source_segments: Int[Array, "B S"],
        *,
        dropout_key: DropoutKey = None,
    ) -> Float[Array, "B T D"]:
        """The decoder's output at every target position, each seeing the positions up to its own."""
        keys = split_key(dropout_key, len(self.decoder) + 1)
        x = self.embedding(target_inputs, target_positions, keys[-1])
        order = self.order(target_positions, target_positions, causal=True)
        for block, key in zip(self.decoder, keys, strict=False):
            x = self._kept(block)(x, encoded, target_segments, source_segments, order, key)
        return self.final_norms[1](x) if self.final_norms else x

    def _kept(self, block: Callable[..., Array]) -> Callable[..., Array]:
        """The block, of which the gradients keep the inputs only where the config says so (Chen et al. 2016)."""
        return jax.checkpoint(block) if self.config.rematerialize else block

    def order(self, query_positions: Int[Array, "B T"], key_positions: Int[Array, "B S"], *, causal: bool) -> Order:
        """What self-attention is told of the order of its tokens beside their embeddings; causal: the decoder's.

        Of keys from a cache the positions serve a bias only: a rotation is in them already.
        """
        match self.config.positions:
            case "rotary":
                return Order(rotation=query_positions)
            case "alibi":
                return Order(bias=alibi_bias(query_positions, key_positions, self.config.num_heads))
            case "relative":
                return Order(bias=self.relative_biases[int(causal)](query_positions, key_positions))
            case _:
                return Order()

    def logits(self, decoded: Float[Array, "*rows D"]) -> Float[Array, "*rows V"]:
        """Unnormalized log-probabilities of the next token, in float32."""
        return self.embedding.logits(decoded)

    def loss(
        self, decoded: Float[Array, "B T D"], labels: Int[Array, "B T"], real: Bool[Array, "B T"], smoothing: float
    ) -> Loss:
        """Loss sums of the next tokens ``labels``, without all logits at once; ``smoothed`` has gradients."""
        return self.embedding.loss(decoded, labels, real, smoothing)

    def start_cache(
        self, encoded: Float[Array, "B S D"], source_segments: Int[Array, "B S"], *, beams: int, max_length: int
    ) -> Cache:
        """An empty past for ``beams`` hypotheses per sentence of up to ``max_length`` tokens, and the source's keys."""
        batch, heads, places = len(encoded), self.config.groups, max_length * beams
        cross = [block.cross_attention.keys_and_values(encoded) for block in self.decoder]
        return Cache(
            self_keys=tuple(jnp.zeros((batch, heads, key.shape[3], places), key.dtype) for key, _ in cross),
            self_values=tuple(jnp.zeros((batch, heads, places, value.shape[3]), value.dtype) for _, value in cross),
            cross_keys=tuple(key.swapaxes(2, 3) for key, _ in cross),
            cross_values=tuple(value for _, value in cross),
            source_segments=source_segments,
            ancestors=own_places(batch, beams, max_length),
        )

    def decode_step(
        self, tokens: Int[Array, "B K"], position: Int[Array, ""], cache: Cache
    ) -> tuple[Float[Array, "B K V"], Float[Array, "B K S"], Cache]:
        """Logits after the tokens at ``position`` (BOS at 0) of every beam, and the cache with these tokens in it.

        Between the two, how much of each source token is seen in this step: the last block's weights, the mean over
        heads. The compiler leaves them out where nobody uses them.
        """
        (batch, beams), places = tokens.shape, cache.self_values[0].shape[2]
        positions = jnp.broadcast_to(position, tokens.shape)
        x = self.embedding(tokens, positions, None)
        order = self.order(positions, jnp.broadcast_to(jnp.arange(places) // beams, (batch, places)), causal=True)
        order = order.with_bias(lineage_bias(cache.ancestors, self.config.num_heads))
        for layer, block in enumerate(self.decoder):
            x, seen, cache = block.step(x, position, layer, cache, order)
        return self.logits(self.final_norms[1](x) if self.final_norms else x), seen.mean(axis=1), cache


def build(config: ModelConfig, vocab_size: int) -> nnx.GraphDef[Transformer]:
    """The model's structure without its numbers: ``nnx.merge(graphdef, params)`` is a Transformer."""
    return structure(config, vocab_size)[0]


@cache
def structure(config: ModelConfig, vocab_size: int) -> tuple[nnx.GraphDef[Transformer], Any]:
    """The structure, and an ``nnx.State`` with each parameter's shape, type and letters of axes (model/sharding.py)."""
    model = nnx.eval_shape(lambda: Transformer(config, vocab_size, rngs=nnx.Rngs(0)))
    return nnx.graphdef(model), nnx.state(model, nnx.Param)


def init_params(config: ModelConfig, vocab_size: int, key: Array) -> Params:
    """Initial parameters in float32, in one compiled call."""

    @jax.jit
    def init(key: Array) -> Params:
        return nnx.to_pure_dict(nnx.state(Transformer(config, vocab_size, rngs=nnx.Rngs(params=key)), nnx.Param))

    return init(key)
