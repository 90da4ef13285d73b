"""Attention, written for one head of one sentence and lifted with ``vmap`` over heads and sentences.

Every axis has one letter, with one meaning in the whole project:

    B  batch row                  N  query head                        D  model width
    T  query (target) position    G  key/value head                    F  feed-forward width
    S  key (source) position      R  query heads per key/value head    V  vocabulary
    H  width of a query/key head  U  width of a value head             L  layer
    K  beam                       J  returned hypothesis               C  candidate continuation
    P  sentence pair              M  segment of a packed row           E  encoder width

Reading order: head.py (the definition), scores.py (how well a query matches a key), masks.py (which keys a query sees),
multihead.py (all heads of a batch, and the choice of a kernel), kernels/ (the same result, faster or in less memory).
"""
