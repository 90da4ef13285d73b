"""Measure speed: contestants take turns, so that other load on the machine affects all of them equally."""
