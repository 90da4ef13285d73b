"""Multiplications of the model's matrix products, which training and decoding costs are composed of.

D model width · F feed-forward width · N query head · G key/value head · H width of a query/key head ·
U width of a value head
"""

from model.config import ModelConfig


def query_and_output(model: ModelConfig) -> int:
    """Return the multiplications of one token from D to N·H and from N·U to D; a learned score adds N·H·H."""
    learned_score = model.num_heads * model.head_dim**2 if model.score == "general" else 0
    return model.d_model * model.num_heads * (model.head_dim + model.value_width) + learned_score


def key_and_value(model: ModelConfig) -> int:
    """Return the multiplications of one token from D to G·H and G·U."""
    return model.d_model * model.groups * (model.head_dim + model.value_width)


def feed_forward(model: ModelConfig) -> int:
    """Return the multiplications of one token from D to F and back."""
    return 2 * model.d_model * model.d_ff


def attention(model: ModelConfig, pairs: int) -> int:
    """Return the multiplications of all heads for pairs of a query and a key: H for the score, U for the value."""
    return pairs * model.num_heads * (model.head_dim + model.value_width)


def encoder(model: ModelConfig, tokens: int) -> int:
    """Return the multiplications of all encoder layers for a row in which every token attends to every token."""
    token = query_and_output(model) + key_and_value(model) + feed_forward(model)
    return model.encoder_layers * (tokens * token + attention(model, tokens**2))


def decoder_token(model: ModelConfig) -> int:
    """Return the multiplications of a target token in one layer, without scores, values, and keys of the source."""
    return 2 * query_and_output(model) + key_and_value(model) + feed_forward(model)
