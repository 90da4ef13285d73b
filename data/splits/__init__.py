"""Held-out pairs, and proof that they share no sentence with the training pairs."""
