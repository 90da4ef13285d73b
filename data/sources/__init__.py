"""Readers of sentence pairs, one for each kind of file."""
