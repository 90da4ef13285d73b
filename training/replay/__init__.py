"""Take a step of a run again, and find where two runs differ."""
