"""Replay steps of a run, and find where two runs diverge."""
