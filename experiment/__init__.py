"""From configs to runs and back: open, load, compare and sweep runs."""
