"""The parts of a block: matrix product, dropout, residual, feed-forward, multi-head attention, embedding."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, Key

from attention import Score, additive, attend, dot_product, general, scaled_dot_product, weigh
from model.config import ModelConfig
from model.loss import Loss, cross_entropy_in_chunks
from model.positions import Order, rotate, sinusoidal_positions
from model.sharding import by_rows, whole_width

NO_ORDER = Order()
DropoutKey = Key[Array, ""] | None  # no key means no dropout


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def matmul(
    x: Float[Array, "*rows D"], kernel: Float[Array, "_ _"], dtype: str, contract: int = 0
) -> Float[Array, "*rows F"]:
    """``x`` times a matrix whose axis ``contract`` is D, with operands in ``dtype`` and sums in float32.

    The result has the dtype of ``x``. The gradients are written out because autodiff would contract the kernel's over
    two axes at once and multiply in float32, which XLA on a CPU runs 1.3 and 1.6 times slower than these flat products.
    It also runs a product with a transposed matrix slower, up to 1.8 times, than one over the matrix's other axis.
    """
    product = _dot(_flat(x, dtype), kernel.astype(dtype), 1, contract)
    return product.astype(x.dtype).reshape(*x.shape[:-1], -1)


def _matmul_forward(x: Array, kernel: Array, dtype: str, contract: int) -> tuple[Array, tuple[Array, Array]]:
    return matmul(x, kernel, dtype, contract), (x, kernel)


def _matmul_backward(dtype: str, contract: int, saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    flat, rows = _flat(x, dtype), _flat(gradient, dtype)
    x_gradient = _dot(rows, kernel.astype(dtype), 1, 1 - contract).astype(x.dtype).reshape(x.shape)
    kernel_gradient = _dot(flat, rows, 0, 0) if contract == 0 else _dot(rows, flat, 0, 0)
    return x_gradient, kernel_gradient.astype(kernel.dtype)


def _flat(x: Array, dtype: str) -> Array:
    return x.reshape(-1, x.shape[-1]).astype(dtype)


def _dot(left: Array, right: Array, left_axis: int, right_axis: int) -> Array:
    axes = (((left_axis,), (right_axis,)), ((), ()))
    return jax.lax.dot_general(left, right, axes, preferred_element_type=jnp.float32)


matmul.defvjp(_matmul_forward, _matmul_backward)


def dropout(x: Float[Array, "*shape"], rate: float, key: DropoutKey) -> Float[Array, "*shape"]:
    """Zero each element with probability ``rate`` and scale the others by 1 / (1 - rate); nothing without a key."""
    if key is None or rate == 0:
        return x
    return jnp.where(bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def bernoulli(key: Key[Array, ""], probability: float, shape: tuple[int, ...]) -> Bool[Array, "*shape"]:
    """Independent draws, each true with this probability to within 2^-17.

    Two come from each random word, where ``jax.random.bernoulli`` takes a word for each: words are what dropout costs.
    """
    words = jax.random.bits(key, (*shape[:-1], -(-shape[-1] // 2)))
    halves = jnp.concatenate([words & 0xFFFF, words >> 16], axis=-1)[..., : shape[-1]]
    return halves < jnp.uint32(round(2**16 * probability))


def split_key(key: DropoutKey, parts: int) -> list[DropoutKey]:
    """One key per dropout site, or as many Nones."""
    return [None] * parts if key is None else list(jax.random.split(key, parts))


class Dense(nnx.Module):
    """x W + b, with W drawn as Glorot and Bengio (2010) propose. ``axes`` are W's letters (model/sharding.py)."""

    def __init__(self, width_in: int, width_out: int, dtype: str, axes: str, *, rngs: nnx.Rngs):
        initial = nnx.initializers.xavier_uniform()(rngs.params(), (width_in, width_out))
        self.kernel = nnx.Param(initial, axes=axes)
        self.bias = nnx.Param(jnp.zeros(width_out), axes=axes[1])
        self.dtype = dtype

    def __call__(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows F"]:
        return matmul(x, self.kernel[...], self.dtype) + self.bias[...].astype(x.dtype)


class FeedForward(nnx.Module):
    """Position-wise feed-forward network: one hidden layer (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        self.up = Dense(config.d_model, config.d_ff, config.matmul_dtype, "DF", rngs=rngs)
        self.down = Dense(config.d_ff, config.d_model, config.matmul_dtype, "FD", rngs=rngs)
        self.activation = {"relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu}[config.activation]

    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        return self.down(self.activation(self.up(x)))


class MultiHeadAttention(nnx.Module):
    """Multi-head attention: one projection per role, split over heads (Vaswani et al. 2017, section 3.2.2).

    Every head reads the whole of ``x`` through its own columns of the projections.
    """

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        heads, groups, dtype = config.num_heads, config.groups, config.matmul_dtype
        self.query = Dense(config.d_model, heads * config.head_dim, dtype, "DN", rngs=rngs)
        self.key = Dense(config.d_model, groups * config.head_dim, dtype, "DG", rngs=rngs)
        self.value = Dense(config.d_model, groups * config.value_width, dtype, "DG", rngs=rngs)
        self.output = Dense(heads * config.value_width, config.d_model, dtype, "ND", rngs=rngs)
        self.score = LearnedScore(config, rngs=rngs)
        self.config = config

    def __call__(
        self,
        x: Float[Array, "B T D"],
        context: Float[Array, "B S D"],
        *,
        query_segments: Int[Array, "B T"],
        key_segments: Int[Array, "B S"],
        causal: bool = False,
        order: Order = NO_ORDER,
        dropout_key: DropoutKey = None,
    ) -> Float[Array, "B T D"]:
        """Queries from ``x``, keys and values from ``context``; self-attention passes the same array twice.

        ``order`` is for self-attention: its rotation turns queries and keys alike.
        """
        key, value = self.keys_and_values(context, order)
        return self.attend_to(
            x,
            key,
            value,
            query_segments=query_segments,
            key_segments=key_segments,
            causal=causal,
            order=order,
            dropout_key=dropout_key,
            kernel=self.config.kernel,
        )

    def keys_and_values(
        self, context: Float[Array, "B S D"], order: Order = NO_ORDER
    ) -> tuple[Float[Array, "B G S H"], Float[Array, "B G S U"]]:
        """What queries meet; decoding keeps it in a cache instead of computing it again at each step."""
        key, value = (_split_heads(dense(context), self.config.groups) for dense in (self.key, self.value))
        return _turn(key, order), value

    def attend_to(
        self,
        x: Float[Array, "B T D"],
        key: Float[Array, "B G S H"],
        value: Float[Array, "B G S U"],
        *,
        query_segments: Int[Array, "B T"],
        key_segments: Int[Array, "B S"],
        causal: bool = False,
        order: Order = NO_ORDER,
        dropout_key: DropoutKey = None,
        kernel: str = "definition",
    ) -> Float[Array, "B T D"]:
        """Queries from ``x`` over given keys and values; heads side by side, projected back to the model width.

        The kernel is the definition unless it is said: over a cache there is one query, and nothing to gain.
        """
        heads = attend(
            self._queries(x, order),
            key,
            value,
            query_segments=query_segments,
            key_segments=key_segments,
            causal=causal,
            bias=order.bias,
            score=self.score(),
            dropout_rate=self.config.attention_dropout,
            dropout_key=dropout_key,
            kernel=kernel,
        )
        return self.output(heads.swapaxes(1, 2).reshape(*x.shape[:2], -1))

    def weights(
        self,
        x: Float[Array, "B T D"],
        key: Float[Array, "B G S H"],
        *,
        query_segments: Int[Array, "B T"],
        key_segments: Int[Array, "B S"],
        causal: bool = False,
        order: Order = NO_ORDER,
    ) -> Float[Array, "B N T S"]:
        """How much each query of ``attend_to`` with the same arguments takes from each key, head by head."""
        return weigh(
            self._queries(x, order),
            key,
            query_segments=query_segments,
            key_segments=key_segments,
            causal=causal,
            bias=order.bias,
            score=self.score(),
        )

    def _queries(self, x: Float[Array, "B T D"], order: Order) -> Float[Array, "B N T H"]:
        return _turn(_split_heads(self.query(x), self.config.num_heads), order)


def _split_heads(projected: Float[Array, "B T NH"], heads: int) -> Float[Array, "B N T H"]:
    return projected.reshape(*projected.shape[:2], heads, -1).swapaxes(1, 2)


def _turn(heads: Float[Array, "B N T H"], order: Order) -> Float[Array, "B N T H"]:
    return heads if order.rotation is None else rotate(heads, order.rotation)


class LearnedScore(nnx.Module):
    """The configured score with its learned arrays, one for each head, if it has any (``attention/scores.py``).

    They start so that scores have about the variance of scaled dot products.
    """

    def __init__(self, config: ModelConfig, *, rngs: nnx.Rngs):
        heads, width = config.num_heads, config.head_dim
        if config.score == "general":
            self.weights = nnx.Param(jax.random.normal(rngs.params(), (heads, width, width)) / width, axes="NHH")
        if config.score == "additive":
            self.weights = nnx.Param(jax.random.normal(rngs.params(), (heads, width)) / width**0.5, axes="NH")
        self.name = config.score

    def __call__(self) -> Score:
        match self.name:
            case "dot_product":
                return Score(dot_product)
            case "general":
                return Score(general, self.weights[...])
            case "additive":
                return Score(additive, self.weights[...])
            case _:
                return Score(scaled_dot_product)


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
    """The sum around every sublayer, with the norm and the dropout that go with it.

    Post-norm is LayerNorm(x + Dropout(sublayer(x))) (Vaswani et al. 2017, section 5.4); pre-norm is
    x + Dropout(sublayer(LayerNorm(x))) (Xiong et al. 2020), which needs one more norm at the end of the stack.
    """

    def __init__(self, config: ModelConfig):
        self.norm = LayerNorm(config.d_model)
        self.pre_norm = config.norm == "pre"
        self.rate = config.dropout

    def __call__(
        self, x: Float[Array, "B T D"], sublayer: Callable[[Array], Array], key: DropoutKey
    ) -> Float[Array, "B T D"]:
        total = by_rows(x + dropout(sublayer(self.enter(x)), self.rate, key))
        return total if self.pre_norm else self.norm(total)

    def enter(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        """What the sublayer reads."""
        return self.norm(x) if self.pre_norm else x


class Embedding(nnx.Module):
    """One table for source, target and output (Press and Wolf 2017; Vaswani et al. 2017, section 3.4)."""

    def __init__(self, config: ModelConfig, vocab_size: int, *, rngs: nnx.Rngs):
        deviation = config.d_model**-0.5
        self.table = nnx.Param(jax.random.normal(rngs.params(), (vocab_size, config.d_model)) * deviation, axes="VD")
        if config.positions == "learned":
            shape = config.max_positions, config.d_model
            self.positions = nnx.Param(jax.random.normal(rngs.params(), shape) * deviation, axes="TD")
        self.config = config

    def __call__(
        self, tokens: Int[Array, "B T"], positions: Int[Array, "B T"], key: DropoutKey
    ) -> Float[Array, "B T D"]:
        """Rows of the table times √D, plus codes of positions, with dropout, in the dtype of the activations."""
        embedded = whole_width(self.table[...])[tokens] * self.config.d_model**0.5 + self._codes(positions)
        return by_rows(dropout(embedded.astype(self.config.dtype), self.config.dropout, key))

    def _codes(self, positions: Int[Array, "B T"]) -> Float[Array, "B T D"] | float:
        """What is added for positions; nothing if attention is told of them instead."""
        match self.config.positions:
            case "sinusoidal":
                return sinusoidal_positions(positions, self.config.d_model)
            case "learned":  # NaN beyond the table, where indexing would repeat its last row without a word
                return self.positions[...].at[positions].get(mode="fill", fill_value=jnp.nan)
            case _:
                return 0.0

    def logits(self, x: Float[Array, "*rows D"]) -> Float[Array, "*rows V"]:
        """Scores of the vocabulary, in float32: ``x`` against every row of the table."""
        return project(x, self.table[...], self.config.matmul_dtype)

    def loss(
        self, x: Float[Array, "B T D"], labels: Int[Array, "B T"], real: Bool[Array, "B T"], smoothing: float
    ) -> Loss:
        """Cross-entropy of these scores, of which only some are in memory at a time."""
        to_vocabulary = partial(project, dtype=self.config.matmul_dtype)
        return cross_entropy_in_chunks(to_vocabulary, x, self.table[...], labels, real, smoothing)


def project(x: Float[Array, "*rows D"], table: Float[Array, "V D"], dtype: str) -> Float[Array, "*rows V"]:
    """``x`` against every row of the table, in float32."""
    return matmul(x.astype(jnp.float32), table, dtype, contract=1)
