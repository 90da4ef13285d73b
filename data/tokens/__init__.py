"""Sentences as token ids: the vocabulary, tables of tokens, subword sampling."""
