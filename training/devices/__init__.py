"""Devices and processes: mesh, distribution, compilation, checks before the first step."""
