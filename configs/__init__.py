"""Experiments: YAML files, and the schema that composes every room's config dataclasses."""
