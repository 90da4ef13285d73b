"""Optimizer and schedules, the training state and step, checkpoints, and what a run shows of itself."""
