"""What every room may use: errors, files, text, the disk cache, the ids of special tokens."""
