"""The encoder-decoder Transformer (Vaswani et al. 2017, figure 1)."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float, Int

from attention.masks import Mask
from common.special_tokens import PAD
from model.cache import Cache, EncodedSource, LayerCache, lineage_bias
from model.config import POSITIONS, ModelConfig
from model.embedding import Embedding, hide
from model.layers import (
    Dense,
    DropoutKey,
    FeedForward,
    KeysValues,
    LayerNorm,
    MultiHeadAttention,
    Residual,
    skip_sentences,
    split_key,
)
from model.positions import Order, RelativeBias, alibi_bias

Params = dict  # nested, from names to arrays
Collected = list[Array] | None  # attention weights "B N T S", appended in the order of the layers; S may differ


class Tokens(NamedTuple):
    """Token ids, packed into rows: segment 0 is padding, and positions restart with each segment."""

    ids: Int[Array, "B T"]
    segments: Int[Array, "B T"]
    positions: Int[Array, "B T"]

    @classmethod
    def one_per_row(cls, ids: Int[Array, "B T"]) -> "Tokens":
        """One sentence per row, then PAD. PAD has position 0, as a padded row may be longer than a position table."""
        is_real = ids != PAD
        return cls(ids, is_real.astype(jnp.int32), jnp.where(is_real, jnp.arange(ids.shape[1]), 0))


class EncoderBlock(nnx.Module):
    """Self-attention over the source, then a feed-forward network. Its D is the encoder's width."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.self_attention = MultiHeadAttention(config, rngs=rngs)
        self.feed_forward = FeedForward(config, rngs=rngs)
        self.residuals = nnx.List([Residual(config) for _ in range(2)])

    def __call__(
        self, x: Float[Array, "B S D"], mask: Mask, order: Order, dropout_key: DropoutKey, weights: Collected = None
    ) -> Float[Array, "B S D"]:
        keys = split_key(dropout_key, 4)
        entered = self.residuals[0].enter(x)
        output = self.self_attention(entered, entered, mask, order, keys[2], weights)
        x = self.residuals[0].add(x, output, keys[0])
        output = self.feed_forward(self.residuals[1].enter(x), keys[3])
        return self.residuals[1].add(x, output, keys[1])


class DecoderBlock(nnx.Module):
    """Masked self-attention over the target, attention over the encoded source, then a feed-forward network."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.self_attention = MultiHeadAttention(config, rngs=rngs)
        without = replace(config, value_residual=False)
        self.cross_attention = MultiHeadAttention(without, config.encoder_width, rngs=rngs)
        self.feed_forward = FeedForward(config, rngs=rngs)
        self.residuals = nnx.List([Residual(config) for _ in range(3)])
        self.layer_drop = config.decoder_layer_drop

    def __call__(
        self,
        x: Float[Array, "B T D"],
        source: Float[Array, "B S E"] | KeysValues,
        past_mask: Mask,
        source_mask: Mask,
        order: Order,
        dropout_key: DropoutKey = None,
        past: KeysValues | None = None,
        weights: Collected = None,
    ) -> Float[Array, "B T D"]:
        """``weights`` collects the attention weights over the past, then those over the source.

        Without ``past``, ``x`` holds the whole target, and ``source`` is the encoder's output. In cached decoding,
        ``x`` holds the newest token of each beam of a sentence, and ``past`` and ``source`` are keys and values from
        the cache. The queries of all beams attend to the keys of all beams together; the bias in ``order`` hides keys
        outside a beam's own past.
        """
        keys, before = split_key(dropout_key, 7), x
        entered = self.residuals[0].enter(x)
        output = self.self_attention(entered, entered if past is None else past, past_mask, order, keys[3], weights)
        x = self.residuals[0].add(x, output, keys[0])
        entered = self.residuals[1].enter(x)
        output = self.cross_attention(entered, source, source_mask, dropout_key=keys[4], weights=weights)
        x = self.residuals[1].add(x, output, keys[1])
        output = self.feed_forward(self.residuals[2].enter(x), keys[5])
        x = self.residuals[2].add(x, output, keys[2])
        return skip_sentences(before, x, past_mask.query_segments, self.layer_drop, keys[6])

    def write(
        self, x: Float[Array, "B K D"], cache: LayerCache, order: Order, positions: Int[Array, " B"]
    ) -> LayerCache:
        """The cache with the keys and values of the tokens at ``positions`` added, for ``__call__`` to attend to."""
        return cache.write(self.self_attention.keys_and_values(self.residuals[0].enter(x), order), positions)


def by_block(config: ModelConfig, blocks: int) -> list[ModelConfig]:
    """The config of each block of a stack: the first one has no earlier block to take values from."""
    return [replace(config, value_residual=config.value_residual and block > 0) for block in range(blocks)]


class Transformer(nnx.Module):
    """Encoder and decoder with a shared embedding, which also computes the logits.

    The results of a segment do not depend on the other segments of its row.
    """

    def __init__(self, config: ModelConfig, vocab_size: int, *, rngs: nnx.Rngs):
        self.embedding = Embedding(config, vocab_size, rngs=rngs)
        of_encoder = config.of_encoder
        self.encoder = nnx.List([EncoderBlock(each, rngs=rngs) for each in by_block(of_encoder, config.encoder_layers)])
        self.decoder = nnx.List([DecoderBlock(each, rngs=rngs) for each in by_block(config, config.decoder_layers)])
        self.final_norms = nnx.List(map(LayerNorm, [of_encoder.d_model, config.d_model] if config.final_norm else []))
        if config.encoder_width:
            self.encoder_input = Dense(config.d_model, config.encoder_width, config.matmul_dtype, "DE", rngs=rngs)
        if config.positions == "relative":
            self.relative_biases = nnx.List(
                [RelativeBias(config, causal=causal, rngs=rngs) for causal in (False, True)]
            )
        self.config = config

    def __call__(self, source: Tokens, target: Tokens, *, dropout_key: DropoutKey = None) -> Float[Array, "B T D"]:
        """The decoder's output at every target position under teacher forcing; ``logits`` turns it into scores."""
        keys = split_key(dropout_key, 2)
        encoded = self.encode(source, dropout_key=keys[0])
        return self.decode(target, encoded, source.segments, dropout_key=keys[1])

    def encode(
        self,
        source: Tokens,
        *,
        dropout_key: DropoutKey = None,
        weights: Collected = None,
        embedded: Float[Array, "B S D"] | None = None,
    ) -> Float[Array, "B S E"]:
        """The encoder's output at every source position. ``weights`` collects one array from each block.

        ``embedded`` replaces the tokens' embeddings, for gradients with respect to them. With ``model.encoder_width``,
        a dense layer projects embeddings to that width.
        """
        *keys, embedding_key, word_key = split_key(dropout_key, len(self.encoder) + 2)
        ids = hide(source.ids, self.config.source_word_dropout, word_key)
        x = self.embedding(ids, source.positions, embedding_key) if embedded is None else embedded
        if self.config.encoder_width:
            x = self.encoder_input(x)
        order = self._add_values(self.order(source.positions, source.positions, causal=False), self.encoder[0], x)
        mask = Mask(source.segments, source.segments)
        for block, key in zip(self.encoder, keys, strict=True):
            x = self._rematerialized(block, weights)(x, mask, order, key)
        return self._final_norm(0, x)

    def decode(
        self,
        target: Tokens,
        encoded: Float[Array, "B S E"],
        source_segments: Int[Array, "B S"],
        *,
        dropout_key: DropoutKey = None,
        weights: Collected = None,
    ) -> Float[Array, "B T D"]:
        """The decoder's output at every target position; each sees the target up to itself and the whole source.

        ``weights`` collects two arrays from each block: the weights over the past, then those over the source.
        """
        *keys, embedding_key, word_key = split_key(dropout_key, len(self.decoder) + 2)
        x = self.embedding(hide(target.ids, self.config.target_word_dropout, word_key), target.positions, embedding_key)
        order = self._add_values(self.order(target.positions, target.positions, causal=True), self.decoder[0], x)
        masks = Mask(target.segments, target.segments, causal=True), Mask(target.segments, source_segments)
        for block, key in zip(self.decoder, keys, strict=True):
            x = self._rematerialized(block, weights)(x, encoded, *masks, order, key)
        return self._final_norm(1, x)

    def _rematerialized(self, block: Callable[..., Array], weights: Collected) -> Callable[..., Array]:
        """With ``model.rematerialize``, only the block's inputs are stored for the gradients (Chen et al. 2016).

        Weights could not leave such a block, but callers that collect them need no gradients.
        """
        if weights is not None:
            return partial(block, weights=weights)
        return jax.checkpoint(block) if self.config.rematerialize else block

    def _add_values(self, order: Order, first: EncoderBlock | DecoderBlock, x: Float[Array, "B T D"]) -> Order:
        """Add the first block's values, given its input ``x``; the compiler does not compute them twice."""
        if not self.config.value_residual:
            return order
        return order._replace(first_values=first.self_attention.values(first.residuals[0].enter(x)))

    def _final_norm(self, stack: int, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        return self.final_norms[stack](x) if self.final_norms else x

    def order(self, query_positions: Int[Array, "B T"], key_positions: Int[Array, "B S"], *, causal: bool) -> Order:
        """What self-attention knows about token order besides the embeddings; ``causal`` in the decoder.

        Cached keys are already rotated, so for them ``key_positions`` matter only to a bias.
        """
        if POSITIONS[self.config.positions] == "embeddings":
            return Order()
        match self.config.positions:
            case "rotary":
                return Order(rotation=query_positions)
            case "alibi":
                return Order(bias=alibi_bias(query_positions, key_positions, self.config.num_heads))
            case "relative":
                return Order(bias=self.relative_biases[int(causal)](query_positions, key_positions))
            case _:
                raise NotImplementedError(f"model.positions={self.config.positions}")

    def logits(self, decoded: Float[Array, "*rows D"]) -> Float[Array, "*rows V"]:
        """Unnormalized log-probabilities of the next token, in float32."""
        return self.embedding.logits(decoded)

    def encode_for_search(self, source: Tokens) -> EncodedSource:
        """What each decoding step reads from the sources, computed once."""
        encoded = self.encode(source)
        memories = [block.cross_attention.keys_and_values(encoded) for block in self.decoder]
        layers = tuple(LayerCache(memory.key.swapaxes(2, 3), memory.value) for memory in memories)
        return EncodedSource(layers, source.segments)

    def decode_step(
        self, ids: Int[Array, "B K"], positions: Int[Array, " B"], cache: Cache
    ) -> tuple[Float[Array, "B K V"], Float[Array, "B K S"], Cache]:
        """One decoding step: the tokens of every beam at their sentence's position (BOS at 0).

        Returns the logits of the next tokens, the attention to each source token (the last block's weights, averaged
        over heads; the compiler drops them if unused), and the cache with these tokens added.
        """
        of_tokens = jnp.broadcast_to(positions[:, None], ids.shape)
        x = self.embedding(ids, of_tokens, None)
        order = self.order(of_tokens, cache.positions(), causal=True)
        lineage = lineage_bias(cache.ancestors, self.config.num_heads)
        order = order._replace(bias=lineage if order.bias is None else order.bias + lineage)
        past: list[LayerCache] = []
        weights: list[Array] = []
        order, masks = self._add_values(order, self.decoder[0], x), cache.masks(positions)
        for block, layer, source in zip(self.decoder, cache.past, cache.source.layers, strict=True):
            past.append(block.write(x, layer, order, positions))
            x = block(x, source.memory, *masks, order, past=past[-1].memory, weights=weights)
        logits = self.logits(self._final_norm(1, x))
        return logits, weights[-1].mean(axis=1), cache._replace(past=tuple(past))


def gather_embeddings(params: Params) -> Params:
    """Gather the table's width, so that each device looks up whole rows; the gradient is split like the table.

    Done once for all uses of the table, so that their gradients are added before devices sum them.
    """
    if jax.sharding.get_abstract_mesh().empty:
        return params
    embedding, whole_rows = params["embedding"], PartitionSpec(PartitionSpec.UNCONSTRAINED, None)
    table = jax.lax.with_sharding_constraint(embedding["table"], whole_rows)
    return params | {"embedding": embedding | {"table": table}}


def build(config: ModelConfig, vocab_size: int) -> nnx.GraphDef[Transformer]:
    """The model's structure without parameters: ``nnx.merge(graphdef, params)`` is a Transformer."""
    return structure(config, vocab_size)[0]


@cache
def structure(config: ModelConfig, vocab_size: int) -> tuple[nnx.GraphDef[Transformer], Any]:
    """The structure, and an ``nnx.State`` with shape, dtype and axis letters of each parameter (model/sharding.py)."""
    model = nnx.eval_shape(lambda: Transformer(config, vocab_size, rngs=nnx.Rngs(0)))
    return nnx.graphdef(model), nnx.state(model, nnx.Param)


@partial(jax.jit, static_argnums=(0, 1))
def init_params(config: ModelConfig, vocab_size: int, key: Array) -> Params:
    """Initial parameters in float32."""
    return nnx.to_pure_dict(nnx.state(Transformer(config, vocab_size, rngs=nnx.Rngs(params=key)), nnx.Param))
