"""Sentences and tokens on disk, mapped into memory."""
