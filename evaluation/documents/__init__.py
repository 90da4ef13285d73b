"""Translate documents: only the text changes, everything else stays as it is, character by character."""
