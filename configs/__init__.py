"""Experiments: YAML files, and the schema that combines the config dataclasses of all packages."""
