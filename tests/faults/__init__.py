"""Faults that are drawn by seed and number, committed inside the programs, and must change nothing."""
