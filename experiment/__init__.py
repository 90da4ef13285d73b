"""From a config to a run and back: open, load, compare and sweep runs."""
