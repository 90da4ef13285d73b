"""The parts of a block: dropout, dense layer, feed-forward network, multi-head attention, norm and residual."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

from attention.masks import Mask
from attention.multihead import attend, attention_weights
from attention.scores import SCORES, Score
from model.activations import ACTIVATIONS
from model.config import ModelConfig
from model.matmul import matmul
from model.positions import Order, rotate
from model.sharding import shard_rows

NO_ORDER = Order()


class Draws(NamedTuple):
    """What a dropout site draws with: a key, and factors for the rates of dropout and word dropout (None: 1)."""

    key: Key[Array, ""]
    factor: Float[Array, ""] | None = None
    word_factor: Float[Array, ""] | None = None


DropoutKey = Draws | None  # none means no dropout


def dropout(x: Float[Array, "*shape"], rate: float, key: DropoutKey) -> Float[Array, "*shape"]:
    """Zero each element with probability ``rate`` and divide the others by 1 - rate; without a key, return ``x``."""
    if key is None or rate == 0:
        return x
    kept = 1 - (rate if key.factor is None else rate * key.factor)
    return jnp.where(bernoulli(key.key, kept, x.shape), x / kept, 0).astype(x.dtype)


def bernoulli(key: Key[Array, ""], probability: float | Array, shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """Independent draws that are true with this probability, to within 2^-17.

    Each random word serves two draws; ``jax.random.bernoulli`` takes one per draw, which is most of dropout's cost.
    The words of a row are drawn along a single axis, because more axes take longer to compile.
    """
    half = *shape[:-1], -(-shape[-1] // 2)
    words = jax.random.bits(key, (*half[:1], math.prod(half[1:])), jnp.uint32).reshape(half)
    bound = jnp.uint32(round(2**16 * probability))
    return jnp.concatenate([(words & 0xFFFF) < bound, (words >> 16) < bound], axis=-1)[..., : shape[-1]]


def skip_sentences(
    before: Float[Array, "B T D"],
    after: Float[Array, "B T D"],
    segments: Int[Array, "B T"],
    rate: float,
    key: DropoutKey,
) -> Float[Array, "B T D"]:
    """LayerDrop (Fan et al. 2020): with probability ``rate``, a sentence skips the block between before and after.

    Each segment draws for itself; the paper draws once for a whole batch.
    """
    if key is None or rate == 0:
        return after
    skips = bernoulli(key.key, rate, (segments.shape[0], segments.shape[1] + 1))  # for segments 0 to T
    return jnp.where(jnp.take_along_axis(skips, segments, axis=1)[..., None], before, after)


def split_key(key: DropoutKey, parts: int) -> list[DropoutKey]:
    """One key per dropout site, or as many Nones."""
    return [None] * parts if key is None else [key._replace(key=part) for part in jax.random.split(key.key, parts)]


class Dense(nnx.Module):
    """x W + b, with W initialised as in Glorot and Bengio (2010). ``axes`` are W's letters (model/sharding.py)."""

    def __init__(self, width_in: int, width_out: int, dtype: str, axes: str, *, rngs: nnx.Rngs):
        initial = nnx.initializers.xavier_uniform()(rngs.params(), (width_in, width_out))
        self.kernel = nnx.Param(initial, axes=axes)
        self.bias = nnx.Param(jnp.zeros(width_out), axes=axes[1])
        self.dtype = dtype

    def __call__(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows F"]:
        return (matmul(x, self.kernel[...], self.dtype) + self.bias[...]).astype(x.dtype)


class FeedForward(nnx.Module):
    """Position-wise feed-forward network with one hidden layer (Vaswani et al. 2017, section 3.3).

    With ``model.gated`` the hidden layer is activation(x W) ⊙ (x V), with W the gate and V up (Shazeer 2020).
    """

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.up = Dense(config.d_model, config.d_ff, config.matmul_dtype, "DF", rngs=rngs)
        self.down = Dense(config.d_ff, config.d_model, config.matmul_dtype, "FD", rngs=rngs)
        self.gate = Dense(config.d_model, config.d_ff, config.matmul_dtype, "DF", rngs=rngs) if config.gated else None
        self.activation = ACTIVATIONS[config.activation]
        self.rate = config.activation_dropout

    def __call__(self, x: Float[Array, "B T D"], dropout_key: DropoutKey = None) -> Float[Array, "B T D"]:
        hidden = self.up(x)
        hidden = self.activation(hidden) if self.gate is None else self.activation(self.gate(x)) * hidden
        return self.down(dropout(hidden, self.rate, dropout_key))


class KeysValues(NamedTuple):
    """The keys and values that queries attend to."""

    key: Float[Array, "B G S H"]
    value: Float[Array, "B G S U"]


class MultiHeadAttention(nnx.Module):
    """Multi-head attention: one projection per role, split over heads (Vaswani et al. 2017, section 3.2.2).

    Every head reads all of ``x`` through its own columns of the projections. A ``memory_width`` of 0 means d_model.
    """

    def __init__(self, config: ModelConfig, memory_width: int = 0, *, rngs: nnx.Rngs):
        heads, groups, dtype = config.num_heads, config.groups, config.matmul_dtype
        memory_width = memory_width or config.d_model
        self.query = Dense(config.d_model, heads * config.head_dim, dtype, "DN", rngs=rngs)
        self.key = Dense(memory_width, groups * config.head_dim, dtype, "DG", rngs=rngs)
        self.value = Dense(memory_width, groups * config.value_width, dtype, "DG", rngs=rngs)
        self.output = Dense(heads * config.value_width, config.d_model, dtype, "ND", rngs=rngs)
        self.score = LearnedScore(config, rngs=rngs)
        self.norm = QueryKeyNorm(config) if config.query_key_norm else None
        self.gate = Dense(config.d_model, heads, dtype, "DN", rngs=rngs) if config.head_gates else None
        self.first_share = nnx.Param(jnp.full(groups, 0.5), axes="G") if config.value_residual else None
        self.config = config

    def __call__(
        self,
        x: Float[Array, "B T D"],
        memory: Float[Array, "B S E"] | KeysValues,
        mask: Mask,
        order: Order = NO_ORDER,
        dropout_key: DropoutKey = None,
        weights: list[Array] | None = None,
    ) -> Float[Array, "B T D"]:
        """Queries come from ``x``, keys and values from ``memory``; in self-attention ``memory`` is ``x`` too.

        In cached decoding, ``memory`` holds keys and values computed earlier. ``order`` is for self-attention. The
        attention weights, B N T S, are appended to the list ``weights``; without a list they are not computed. The gate
        of a head is the sigmoid of a dense layer of ``x`` (Qiu et al. 2025).
        """
        kernel = "definition"  # cached decoding has few queries, so a kernel gains nothing
        if not isinstance(memory, KeysValues):
            memory, kernel = self.keys_and_values(memory, order), self.config.kernel
        query, score = _split_heads(self.query(x), self.config.num_heads), self.score()
        query = rotate(query if self.norm is None else self.norm.of_queries(query), order.rotation)
        heads = attend(
            query,
            *memory,
            mask=mask,
            bias=order.bias,
            score=score,
            dropout_rate=self.config.attention_dropout,
            dropout_key=None if dropout_key is None else dropout_key.key,
            kernel=kernel,
        )
        if self.gate is not None:
            heads *= jax.nn.sigmoid(self.gate(x)).swapaxes(1, 2)[..., None]
        if weights is not None:
            weights.append(attention_weights(query, memory.key, mask, order.bias, score))
        return self.output(heads.swapaxes(1, 2).reshape(*x.shape[:2], -1))

    def keys_and_values(self, memory: Float[Array, "B S E"], order: Order = NO_ORDER) -> KeysValues:
        """The keys and values of ``memory``; decoding stores them in a cache."""
        key, value = _split_heads(self.key(memory), self.config.groups), self.values(memory, order.first_values)
        key = key if self.norm is None else self.norm.of_keys(key)
        return KeysValues(rotate(key, order.rotation), value)

    def values(self, memory: Float[Array, "B S E"], first: Array | None = None) -> Float[Array, "B G S U"]:
        """The values V of ``memory`` or, with ``model.value_residual``, (1 - λ) V + λ V₁ from the second block on.

        V₁, ``first``, are the values of the stack's first block; λ is learned for each head (Zhou et al. 2024).
        """
        value = _split_heads(self.value(memory), self.config.groups)
        if self.first_share is None:
            return value
        assert first is not None
        share = self.first_share[...][:, None, None]
        return ((1 - share) * value + share * first).astype(value.dtype)


def _split_heads(projected: Float[Array, "B T NH"], heads: int) -> Float[Array, "B N T H"]:
    return projected.reshape(*projected.shape[:2], heads, -1).swapaxes(1, 2)


class QueryKeyNorm(nnx.Module):
    """Queries and keys of root mean square 1, and a learned scale of each head's queries (Henry et al. 2020).

    Scaled dot products become g times the cosine of query and key, with g = scale · √H. The paper has one g for all
    heads, initialized to log₂(L² - L) for sentences of L tokens; here it is initialized to √H.
    """

    def __init__(self, config: ModelConfig):
        self.scale = nnx.Param(jnp.ones(config.num_heads), axes="N")

    def of_queries(self, query: Float[Array, "B N T H"]) -> Float[Array, "B N T H"]:
        return (self.of_keys(query) * self.scale[...][:, None, None]).astype(query.dtype)

    def of_keys(self, key: Float[Array, "B G S H"]) -> Float[Array, "B G S H"]:
        square = jnp.mean(key.astype(jnp.float32) ** 2, axis=-1, keepdims=True)
        return (key / jnp.sqrt(square + 1e-6)).astype(key.dtype)


class LearnedScore(nnx.Module):
    """The configured score with one learned array per head, if it has any (``SCORES`` in ``attention/scores.py``).

    Initial standard deviations are 1/√H, or 1/H with axes HH, so that scores vary about as much as scaled dot products.
    """

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.function, self.learned = SCORES[config.score]
        if self.learned:
            shape = config.num_heads, *(config.head_dim for _ in self.learned)
            deviation = config.head_dim ** (len(self.learned) / 2)
            self.weights = nnx.Param(jax.random.normal(rngs.params(), shape) / deviation, axes="N" + self.learned)

    def __call__(self) -> Score:
        return Score(self.function, self.weights[...]) if self.learned else Score(self.function)


class LayerNorm(nnx.Module):
    """Layer normalization over the model width, computed in float32 (Ba et al. 2016)."""

    def __init__(self, width: int):
        self.scale = nnx.Param(jnp.ones(width), axes="D")
        self.bias = nnx.Param(jnp.zeros(width), axes="D")

    def __call__(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows D"]:
        x32 = x.astype(jnp.float32)
        centred = x32 - jnp.mean(x32, axis=-1, keepdims=True)
        deviation = jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-6)
        return (centred / deviation * self.scale[...] + self.bias[...]).astype(x.dtype)


class Residual(nnx.Module):
    """The residual connection around a sublayer, with its norm and its dropout: ``add(x, sublayer(enter(x)), key)``.

    Post-norm is LayerNorm(x + Dropout(sublayer(x))) (Vaswani et al. 2017, section 5.4). Pre-norm is
    x + Dropout(sublayer(LayerNorm(x))) (Xiong et al. 2020), which needs one more norm at the end of the stack.
    """

    def __init__(self, config: ModelConfig):
        self.norm = LayerNorm(config.d_model)
        self.is_pre_norm = config.final_norm
        self.rate = config.dropout

    def enter(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        """The input of the sublayer."""
        return self.norm(x) if self.is_pre_norm else x

    def add(self, x: Float[Array, "B T D"], output: Float[Array, "B T D"], key: DropoutKey) -> Float[Array, "B T D"]:
        """``x`` plus the sublayer's output."""
        total = shard_rows(x + dropout(output, self.rate, key))
        return total if self.is_pre_norm else self.norm(total)
