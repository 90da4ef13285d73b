"""Held-out pairs, and the check that they share no sentence with the training pairs."""
