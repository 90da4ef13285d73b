"""Attention weights of a sentence and its translation, as pictures and as a page."""
