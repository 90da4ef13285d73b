"""The encoder-decoder Transformer on top of ``attention``: layers, positions, loss, sharding and decoding."""
