"""Optimizer and schedules, the training state and step, checkpoints, and the output of a run."""
