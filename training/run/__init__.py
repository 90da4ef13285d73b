"""What makes a directory a run: checkpoints, metrics, lock, signals, config history."""
