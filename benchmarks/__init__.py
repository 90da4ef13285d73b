"""How speed is measured: contestants take turns, so that a noisy machine disturbs all alike."""
