"""The data card: what is in a corpus, in numbers, tables and pictures."""
