"""Costs computed by formula, to compare with measurements."""
