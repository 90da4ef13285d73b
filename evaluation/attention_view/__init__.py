"""The attention weights of a sentence and its translation, as a page and an archive."""
