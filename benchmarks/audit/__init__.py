"""Check that compiled code computes the right numbers: every part of a config at its real shapes, with a reference."""
