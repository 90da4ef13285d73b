"""A translator small enough to compile in a second: random parameters, a vocabulary learnt from a few sentences."""

import pytest

from data.config import TokenizerConfig
from data.long_lines import Usual
from data.pairs import Pairs
from data.tokens.tokenizer import Tokenizer, train
from evaluation.translate import Translator
from model.config import DecodingConfig, ModelConfig
from tests.conftest import WORDS
from tests.drawn import drawn_params

SENTENCES = [" ".join(WORDS[start : start + 6]) + "." for start in range(len(WORDS) - 6)]


@pytest.fixture(scope="session")
def translator() -> Translator:
    tokenizer = Tokenizer(train(Pairs(SENTENCES, SENTENCES), TokenizerConfig(vocab_size=300)))
    model = ModelConfig(d_model=16, num_heads=2, head_dim=8, encoder_layers=1, decoder_layers=1, d_ff=32)
    decoding = DecodingConfig(beam_size=2, max_length_factor=1.0, max_length_extra=2, batch_sentences=4)
    return Translator((model,), tokenizer, decoding, Usual(sentences=1, tokens=64))


@pytest.fixture(scope="session")
def params(translator):
    return (drawn_params(translator.models[0], translator.tokenizer.vocab_size),)
