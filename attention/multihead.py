"""Attention of all heads of a batch: the definition lifted with ``vmap``, and the choice of a kernel."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float, Key

from attention.head import attend_head, head_weights
from attention.kernels import KernelError, kernel_for
from attention.kernels.chunked import chunked
from attention.kernels.cudnn import cudnn
from attention.kernels.layout import on_each_device
from attention.kernels.request import request_of
from attention.kernels.tpu import tpu
from attention.kernels.xla import xla
from attention.masks import Mask
from attention.scores import SCALED_DOT_PRODUCT, Score, as_dot_product


def attend(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    value: Float[Array, "B G S U"],
    *,
    mask: Mask,
    bias: Float[Array, "B N T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
    dropout_rate: float = 0.0,
    dropout_key: Key[Array, ""] | None = None,
    kernel: str = "definition",
) -> Float[Array, "B N T U"]:
    """Attention of every head of every sentence.

    Encoder self-attention: queries and keys from the source, not causal. Decoder self-attention: both from the target,
    causal. Encoder-decoder attention: queries from the target, keys from the encoder, not causal.

    N query heads share G key/value heads: N / G consecutive query heads share one (Shazeer 2019; Ainslie et al. 2023).
    The learned arrays of a score have a leading axis N; a bias must be finite. The definition is ``attend_head`` under
    ``vmap``; kernels compute its values and gradients up to rounding. KernelError if ``kernel`` does not support the
    device, dtype, score, shapes or options.
    """
    dropout_key = dropout_key if dropout_rate > 0 else None
    chosen = kernel_for(kernel, request_of(query, value, bias, score, dropout_key is not None))
    if chosen == "definition":
        head = partial(attend_head, dropout_rate=dropout_rate)
        dropout_keys = None if dropout_key is None else jax.random.split(dropout_key, query.shape[:2])
        return over_heads_and_batch(head, query, (key, value), mask, bias, score, dropout_keys)
    query, scale = as_dot_product(score, query)
    match chosen:
        case "xla":
            return xla(query, key, value, mask, scale, bias)
        case "chunked":
            fused = chunked
        case "cudnn":
            fused = cudnn
        case "tpu":
            fused = tpu
        case _:
            raise KernelError(f"attend has no case for the kernel {chosen}")
    return on_each_device(partial(fused, scale=scale), query, key, value, mask)


def attention_weights(
    query: Float[Array, "B N T H"],
    key: Float[Array, "B G S H"],
    mask: Mask,
    bias: Float[Array, "B N T S"] | None = None,
    score: Score = SCALED_DOT_PRODUCT,
) -> Float[Array, "B N T S"]:
    """The float32 weights that ``attend`` gives the values, before dropout. No kernel returns them."""
    return over_heads_and_batch(head_weights, query, (key,), mask, bias, score)


def over_heads_and_batch(
    head: Callable[..., Array],
    query: Float[Array, "B N T H"],
    keys: tuple[Float[Array, "B G S _"], ...],
    mask: Mask,
    bias: Float[Array, "B N T S"] | None,
    score: Score,
    *dropout_keys: Key[Array, "B N"] | None,
) -> Float[Array, "B N T _"]:
    """``head(query, *keys, visible, bias, score, *dropout_keys)`` for every head of every sentence, with ``vmap``.

    ``keys`` are the key, or the key and the value. Visible keys depend only on the sentence, the learned arrays of a
    score only on the head. If R query heads share a key/value head, one more ``vmap`` runs over them.
    """

    def of_head(
        query: Array, keys: tuple[Array, ...], visible: Array, bias: Any, score: Score, dropout_keys: tuple[Any, ...]
    ) -> Array:
        return head(query, *keys, visible, bias, score, *dropout_keys)

    (_, heads, *_), groups = query.shape, keys[0].shape[1]
    visible = mask.visible()
    by_head = [(query, 1), (bias, 1), (score, 0), (dropout_keys, 1)]
    query, bias, score, dropout_keys = (_group(tree, axis, groups, heads) for tree, axis in by_head)
    of_group = of_head if groups == heads else jax.vmap(of_head, in_axes=(0, None, None, 0, 0, 0))
    of_sentence = jax.vmap(of_group, in_axes=(0, 0, None, 0, 0, 0))
    of_batch = jax.vmap(of_sentence, in_axes=(0, 0, 0, 0, None, 0))
    output = of_batch(query, keys, visible, bias, score, dropout_keys)
    return output if groups == heads else output.reshape(-1, heads, *output.shape[3:])


def _group(tree: Any, axis: int, groups: int, heads: int) -> Any:
    """Split axis N into G and R. Without sharing, N stays as it is: an axis R of size 1 slows products on a CPU."""
    if groups == heads:
        return tree
    return jax.tree.map(lambda x: x.reshape(*x.shape[:axis], groups, heads // groups, *x.shape[axis + 1 :]), tree)
