"""What every room may use: errors, files, digests, text and its tables, the disk cache, ids of special tokens."""
