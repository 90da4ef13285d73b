"""Pages for a browser, each a single file that works from disk and without a network."""
