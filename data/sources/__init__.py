"""Readers of sentence pairs, one module for each kind of source."""
