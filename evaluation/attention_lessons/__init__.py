"""The worked examples of docs/attention.md: BLOCKS names a lesson's texts on that page, PICTURES the pictures."""
