"""Whether a compiler computes what it should: every part of a config at its real shapes, beside a reference."""
