"""Attention, written for one head of one sentence and lifted with ``vmap`` over heads and sentences.

Every axis has one letter, with one meaning in the whole project:

    B  batch row                  N  query head                        D  model width
    T  query (target) position    G  key/value head                    F  feed-forward width
    S  key (source) position      R  query heads per key/value head    V  vocabulary
    H  width of a query/key head  U  width of a value head             L  layer
    K  beam                       J  returned hypothesis               C  candidate continuation
    P  sentence pair              M  segment of a packed row

Reading order: head.py (the definition), scores.py (how well a query matches a key), masks.py (which keys a query sees),
multihead.py (all heads of a batch, and the choice of a kernel), kernels/ (the same result, faster or in less memory).
"""

from attention.head import attend_head, head_weights, softmax_over_keys
from attention.kernels import KERNELS, KernelError, kernel_for
from attention.kernels.request import Device, Request, current_device, tracing_for
from attention.masks import Mask, visible_keys
from attention.multihead import attend, attention_weights
from attention.scores import SCALED_DOT_PRODUCT, SCORES, Score, additive, dot_product, general, scaled_dot_product

__all__ = [
    "KERNELS",
    "SCALED_DOT_PRODUCT",
    "SCORES",
    "Device",
    "KernelError",
    "Mask",
    "Request",
    "Score",
    "additive",
    "attend",
    "attend_head",
    "attention_weights",
    "current_device",
    "dot_product",
    "general",
    "head_weights",
    "kernel_for",
    "scaled_dot_product",
    "softmax_over_keys",
    "tracing_for",
    "visible_keys",
]
