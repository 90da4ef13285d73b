"""Pages for a browser, each one file that works from disk and without a network."""
