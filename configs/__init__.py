"""Experiments: YAML files over the config dataclasses of every room."""
