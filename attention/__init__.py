"""Attention: written for one head of one sentence, lifted with ``vmap`` over heads and batch.

One letter per axis, here and in the whole project:

    B  batch row             N  query head                    D  model width
    T  query position        G  key/value head                F  feed-forward width
    S  key position          R  query heads per key/value     V  vocabulary
    K  beam                  H  width of a query / key head   L  layer
                             U  width of a value head

Where to read: head.py (the definition), scores.py (how a query matches a key), masks.py (who sees whom), multihead.py
(all heads of all sentences, and the choice of a kernel), kernels/ (the same numbers, faster or in less memory).
"""

from attention.head import attend_head, softmax_over_keys, weigh_head
from attention.kernels import KERNELS, Device, KernelError, Request, current_device, kernel_for, tracing_for
from attention.masks import visible_keys
from attention.multihead import attend, weigh
from attention.scores import (
    SCALED_DOT_PRODUCT,
    Score,
    additive,
    dot_product,
    general,
    scaled_dot_product,
)

__all__ = [
    "KERNELS",
    "SCALED_DOT_PRODUCT",
    "Device",
    "KernelError",
    "Request",
    "Score",
    "additive",
    "attend",
    "attend_head",
    "current_device",
    "dot_product",
    "general",
    "kernel_for",
    "scaled_dot_product",
    "softmax_over_keys",
    "tracing_for",
    "visible_keys",
    "weigh",
    "weigh_head",
]
