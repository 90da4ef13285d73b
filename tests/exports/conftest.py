"""A tokenizer for exports."""

import pytest

from data.config import TokenizerConfig
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train


@pytest.fixture(scope="session")
def mine():
    """A tokenizer with tags of made-up words."""
    pairs = Pairs([f"one {n} {chr(97 + n % 26)}" for n in range(200)], [f"uno {n}" for n in range(200)])
    return Tokenizer(train(pairs, TokenizerConfig(vocab_size=310), ("en", "es")))
