"""From encoded sources to target tokens: cache, searches, sampling, forced decoding."""
