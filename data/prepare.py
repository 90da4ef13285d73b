"""The single data pipeline: from a config to everything that training needs from its corpus.

Sources → corpus → vocabulary → tokens → batches. Everything before the batches is one entry in the user's cache.
"""

import json
import platform
import unicodedata
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version

import numpy as np

from common.cache import Entry, keep, peek
from common.files import hash_files, sha256
from common.option import select
from data.batches.encoded import EncodedPairs, encode_pairs
from data.batches.stream import BatchStream
from data.config import DataConfig, TokenizerConfig
from data.corpus.build import Corpus, build, parse_sources
from data.corpus.report import DataReport, Sides, Vocabulary
from data.sources.source import Source
from data.tokens.tokenizer import Tokenizer, train

FORMAT = 3  # increase it when the same files and settings give another corpus, vocabulary, tokens or layout
LIBRARIES = ("numpy", "pyarrow", "sentencepiece", "sentencex", "lxml")

Sources = dict[str, list[Source]]
Encoded = tuple[Corpus, Tokenizer, EncodedPairs]


@dataclass(frozen=True)
class Prepared:
    """The corpus, its tokenizer, the training batches, and the report on them for ``data.json``."""

    corpus: Corpus
    tokenizer: Tokenizer
    stream: BatchStream
    report: DataReport


class FileChangedError(Exception):
    """A source changed while it was read, so its content does not match its key."""


def prepare(
    config: DataConfig, tokenizer_config: TokenizerConfig, seed: int, tokenizer: Tokenizer | None = None
) -> Prepared:
    """Load, filter, check, tokenize (training a ``tokenizer`` if none is given), pack; UserError for a bad corpus."""
    corpus, tokenizer, encoded = load(config, tokenizer_config, tokenizer)
    stream = BatchStream(encoded, tokenizer, config, seed)
    report = DataReport(
        direction=", ".join(f"{direction.source}-{direction.target}" for direction in config.directions),
        files=corpus.files,
        dropped=corpus.files.dropped(encoded.over_long),
        training_pairs=len(encoded),
        overlap=corpus.overlap,
        tokenizer=Vocabulary(sha256(tokenizer.model), tokenizer.vocab_size),
        row_lengths=Sides(*stream.row_lengths),
        fingerprint=stream.fingerprint,
        fill=Sides(*stream.fill()),
        usual_source=encoded.usual,
    )
    return Prepared(corpus, tokenizer, stream, report)


def load(config: DataConfig, tokenizer_config: TokenizerConfig, tokenizer: Tokenizer | None) -> Encoded:
    """Like ``encode``, but from the cache if the same files were read before with the same settings."""
    sources = parse_sources(config)
    key = entry_key(config, tokenizer_config, sources)

    def compute() -> Entry:
        entry = to_entry(*encode(config, tokenizer_config, tokenizer, sources))
        if entry_key(config, tokenizer_config, sources) != key:
            raise FileChangedError
        return entry

    if key is not None:
        vocabulary = None if tokenizer is None else sha256(tokenizer.model)
        name = key if vocabulary in (None, peek(key).get("vocabulary")) else sha256(f"{key}{vocabulary}")
        with suppress(FileChangedError):
            return from_entry(keep(name, compute), tokenizer)
    return encode(config, tokenizer_config, tokenizer, sources)


def entry_key(config: DataConfig, tokenizer_config: TokenizerConfig, sources: Sources) -> str | None:
    """SHA-256 of everything that corpus, vocabulary and tokens depend on; None if it is unknown before reading them."""
    files = [source.files for each in sources.values() for source in each]
    paths = [path for each in files for path in each or []]
    try:
        digests = hash_files(paths)
    except OSError:
        return None
    if None in files:  # a dataset of the hub
        return None
    versions = [FORMAT, platform.python_version(), unicodedata.unidata_version, *map(version, LIBRARIES)]
    settings = [select(config, "of_text"), asdict(tokenizer_config)]
    return sha256(json.dumps([versions, settings, list(map(str, paths)), digests]))


def encode(
    config: DataConfig, tokenizer_config: TokenizerConfig, tokenizer: Tokenizer | None, sources: Sources
) -> Encoded:
    """Read and check the corpus, train a vocabulary on it unless there is one, and encode the training pairs."""
    corpus = build(config, sources)
    if tokenizer is None:
        tokenizer = Tokenizer(train(corpus.training, tokenizer_config, config.tags))
    return corpus, tokenizer, encode_pairs(corpus.training, tokenizer, config, corpus.weights)


def to_entry(corpus: Corpus, tokenizer: Tokenizer, encoded: EncodedPairs) -> Entry:
    """The arguments as arrays and JSON."""
    model = np.frombuffer(tokenizer.model, np.uint8)
    facts = corpus.facts() | {"vocabulary": sha256(tokenizer.model)}
    return Entry(corpus.arrays() | {"tokenizer": model} | encoded.arrays(corpus.training), facts)


def from_entry(entry: Entry, tokenizer: Tokenizer | None) -> Encoded:
    """The inverse of ``to_entry``; a given ``tokenizer`` must be the one in the entry."""
    arrays, facts = entry
    corpus = Corpus.mapped(arrays, facts)
    return corpus, tokenizer or Tokenizer(arrays["tokenizer"].tobytes()), EncodedPairs.mapped(arrays, corpus.training)
