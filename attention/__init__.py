"""Scaled dot-product attention: written for one head of one sentence, lifted with ``vmap`` over heads and batch.

One letter per axis, here and in the whole project:

    B  batch row             N  head                          D  model width
    T  query position        H  width of a query / key head   F  feed-forward width
    S  key position          U  width of a value head         V  vocabulary
    K  beam                  L  layer
"""

from attention.head import attend_head, softmax_over_keys, weigh_head
from attention.masks import visible_keys
from attention.multihead import attend, weigh

__all__ = ["attend", "attend_head", "softmax_over_keys", "visible_keys", "weigh", "weigh_head"]
