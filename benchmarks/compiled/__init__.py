"""Compile programs with the accelerator vendors' own compilers, which need no device, and report what they plan."""
