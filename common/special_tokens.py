"""Ids of the special tokens, the same in every vocabulary: padding, unknown, beginning and end of sentence."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
