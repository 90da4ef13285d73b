"""Shared by all rooms: errors, files, digests, text and its tables, the disk cache, ids of special tokens."""
