"""Tokens packed into batches: the batch of step s is a function of s."""
