"""Ids of the special tokens, the same in every vocabulary: padding, unknown, beginning and end of sentence."""

PAD, UNK, BOS, EOS = 0, 1, 2, 3
TAGS = 4, 5  # the directions of data.direction=both; in other vocabularies the bytes 0 and 1, which text does not have
