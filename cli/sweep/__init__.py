"""Running the cells of a sweep (configs/sweep.py), each a training run in a process of its own."""
