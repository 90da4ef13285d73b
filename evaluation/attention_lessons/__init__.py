"""The worked examples of docs/attention.md, computed with this repository's own attention functions.

BLOCKS in each module names the texts that it prints for that page; PICTURES in pictures.py names its pictures.
"""
