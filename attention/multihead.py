"""One head of one sentence, lifted over the heads of a sentence and the sentences of a batch."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float, Int, Key

from attention.head import attend_head, weigh_head
from attention.kernels import kernel_for
from attention.kernels.chunked import chunked
from attention.kernels.cudnn import cudnn
from attention.kernels.request import request_of
from attention.kernels.tpu import tpu
from attention.kernels.xla import xla
from attention.masks import visible_keys
from attention.scores import SCALED_DOT_PRODUCT, Score


def attend(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
    dropout_rate: float = 0.0,
    dropout_key: Key[Array, ""] | None = None,
    kernel: str = "definition",
) -> Float[Array, "B N T U"]:
    """Attention of every head of every sentence, each query over the keys that it may see (``attention/masks.py``).

    Encoder self-attention: queries and keys from the source, ``causal=False``. Masked decoder self-attention: both
    from the target, ``causal=True``. Encoder-decoder attention: queries from the target, keys from the encoder.

    N query heads share G key/value heads, N / G in a row each (Shazeer 2019; Ainslie et al. 2023); G is N usually.
    A score's learned arrays have a first axis N; a bias is finite. Every kernel gives the definition's values and
    gradients up to rounding; KernelError if ``kernel`` cannot serve the device, dtype, score or shapes.
    """
    dropout_key = dropout_key if dropout_rate > 0 else None
    sees: dict[str, Any] = {"query_segments": query_segments, "key_segments": key_segments, "causal": causal}
    options: dict[str, Any] = {"bias": bias, "score": score, "dropout_rate": dropout_rate, "dropout_key": dropout_key}
    match kernel_for(kernel, request_of(query, key, value, bias, score, dropout_key)):
        case "xla":
            return xla(query, key, value, **sees, **options)
        case "chunked":
            return chunked(query, key, value, **sees, **options)
        case "cudnn":
            return cudnn(query, key, value, **sees, **options)
        case "tpu":
            return tpu(query, key, value, **sees, **options)
        case _:
            return definition(query, key, value, **sees, **options)


def definition(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    dropout_rate: float,
    dropout_key: Key[Array, ""] | None,
) -> Float[Array, "B N T U"]:
    """``attend_head`` under ``vmap``: what every kernel is compared with."""
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)
    dropout_keys = None if dropout_key is None else jax.random.split(dropout_key, query.shape[:2])

    def head(
        query: Array, keys: tuple[Array, Array], visible: Array, bias: Any, score: Score, dropout_key: Any
    ) -> Array:
        return attend_head(query, *keys, visible, bias, score, dropout_rate, dropout_key)

    return over_heads_and_batch(head)(query, (key, value), visible, bias, score, dropout_keys)


def weigh(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    *,
    query_segments: Int[Array, "B T"],
    key_segments: Int[Array, "B S"],
    causal: bool,
    bias: Float[Array, "B N T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
) -> Float[Array, "B N T S"]:
    """The weights with which ``attend`` sums the values, in float32: for looking at, since nothing else keeps them."""
    visible = jax.vmap(partial(visible_keys, causal=causal))(query_segments, key_segments)

    def head(query: Array, key: tuple[Array], visible: Array, bias: Array | None, score: Score, _: None) -> Array:
        return weigh_head(query, *key, visible, bias, score)

    return over_heads_and_batch(head)(query, (key,), visible, bias, score, None)


def over_heads_and_batch(head: Callable[..., Array]) -> Callable[..., Array]:
    """Lift ``head(query, (key, …), visible, bias, score, dropout_key)`` to arrays with axes B and N, or B and G.

    What is seen differs by sentence only, a score's learned arrays by head only. Where query heads share key/value
    heads, there is one more ``vmap``, over those that share one.
    """

    def lifted(
        query: Array, keys: tuple[Array, ...], visible: Array, bias: Any, score: Score, dropout_keys: Any
    ) -> Array:
        (_, heads, *_), groups = query.shape, keys[0].shape[1]
        by_head = [(query, 1), (bias, 1), (score, 0), (dropout_keys, 1)]
        query, bias, score, dropout_keys = (_group(tree, axis, groups, heads) for tree, axis in by_head)
        of_group = head if groups == heads else jax.vmap(head, in_axes=(0, None, None, 0, 0, 0))
        of_sentence = jax.vmap(of_group, in_axes=(0, 0, None, 0, 0, 0))
        of_batch = jax.vmap(of_sentence, in_axes=(0, 0, 0, 0, None, 0))
        output = of_batch(query, keys, visible, bias, score, dropout_keys)
        return output if groups == heads else output.reshape(-1, heads, *output.shape[3:])

    return lifted


def _group(tree: Any, axis: int, groups: int, heads: int) -> Any:
    """Axis N as G R, if query heads share key/value heads; an axis of one would cost a CPU its fast products."""
    if groups == heads:
        return tree
    return jax.tree.map(lambda x: x.reshape(*x.shape[:axis], groups, heads // groups, *x.shape[axis + 1 :]), tree)
