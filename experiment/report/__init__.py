"""The report on runs: one page with what they learned from what, how, and how well."""
