"""Documents: what is text is translated, and everything else stays as it stands, character by character."""
