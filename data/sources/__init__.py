"""Readers of sentence pairs, one module per kind of source."""
