"""The data card: a corpus in numbers, tables and pictures."""
