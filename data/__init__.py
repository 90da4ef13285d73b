"""Sentence pairs → clean, leak-free corpus → SentencePiece tokens → packed batches. NumPy only, never jax."""
