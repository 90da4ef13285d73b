"""The encoder-decoder Transformer over the attention core, its loss, its cache and its search."""
