"""Two systems on one test set: by how much they differ, whether that could be chance, and where."""
