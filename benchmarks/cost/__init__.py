"""Costs by arithmetic, to compare measurements with: operations, bytes, transfers and expected scaling."""
