"""Running the cells of a sweep (experiment/sweep/cells.py), each a training run in its own process."""
