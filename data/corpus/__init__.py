"""From rows to one corpus: filters, held-out sets, overlap checks, warnings, the report."""
