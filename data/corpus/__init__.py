"""From rows to one corpus: filters, held-out sets, overlap, warnings, word counts, the report."""
