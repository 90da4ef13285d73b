"""Sentences and tokens in unnamed files on disk, mapped into memory."""
