"""Compare systems on one test set: how much they differ, whether that could be chance, and where."""
