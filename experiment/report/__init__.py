"""The report on runs: one page about what they were trained on, how, and how well they translate."""
