"""Attention weights as pictures and as a page."""
