from pathlib import Path

import pytest

from data.config import DataConfig, TokenizerConfig
from data.corpus.report import SPLITS
from data.pairs import Pairs
from data.sources.report import SourceReport
from data.sources.source import load_source
from data.tokens.tokenizer import Tokenizer, train

SUBJECTS = {"Tom": "Tomás", "My sister": "Mi hermana", "The teacher": "El maestro", "Nobody": "Nadie"}
VERBS = {"sees": "ve", "buys": "compra", "wants": "quiere", "remembers": "recuerda", "draws": "dibuja"}
OBJECTS = {"a house": "una casa", "the old bridge": "el puente viejo", "two red apples": "dos manzanas rojas"}


@pytest.fixture(scope="session")
def corpus(corpus_root: Path) -> DataConfig:
    return DataConfig(root=str(corpus_root))


@pytest.fixture(scope="session")
def real_splits(corpus: DataConfig) -> dict[str, tuple[Pairs, SourceReport]]:
    """The pairs of the real corpus and what was read of each file."""
    return {split: load_source(corpus, f"{split}.tsv", split) for split in SPLITS}


@pytest.fixture(scope="session")
def real_training(real_splits: dict[str, tuple[Pairs, SourceReport]]) -> Pairs:
    return real_splits["train"][0]


@pytest.fixture(scope="session")
def real_tokenizer(real_training: Pairs) -> Tokenizer:
    return Tokenizer(train(real_training.take(range(20_000)), TokenizerConfig(vocab_size=4000)))


@pytest.fixture(scope="session")
def phrases() -> Pairs:
    """240 different pairs of 3 to 13 words, from a little grammar."""
    english = [f"{s} {v} {o}{tail}." for tail in ("", " today", " for the house", " and sees it") for s in SUBJECTS
               for v in VERBS for o in OBJECTS]  # fmt: skip
    tails = ("", " hoy", " para la casa", " y lo ve")
    spanish = [f"{s} {v} {o}{tail}." for tail in tails for s in SUBJECTS.values() for v in VERBS.values()
               for o in OBJECTS.values()]  # fmt: skip
    return Pairs(english, spanish)


@pytest.fixture(scope="session")
def phrase_tokenizer(phrases: Pairs) -> Tokenizer:
    return Tokenizer(train(phrases, TokenizerConfig(vocab_size=330)))


@pytest.fixture(scope="session")
def tagged_tokenizer(phrases: Pairs) -> Tokenizer:
    """With a tag for Spanish and one for English."""
    return Tokenizer(train(phrases, TokenizerConfig(vocab_size=330), ["es", "en"]))
