"""Programs compiled for accelerators by their vendors' own compilers, which need no device: what they plan to do."""
