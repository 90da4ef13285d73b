"""A corpus in numbers: its lengths, words, pieces and packed rows, for scripts/inspect_data.py.

P sentence pair · B batch row · V vocabulary.

A word is a run of letters and digits that may have apostrophes and hyphens inside; case does not count.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from common.special_tokens import UNK
from data.assemble import Corpus, assemble, pair_weights
from data.batches.stream import BatchStream
from data.batches.token_table import TokenTable, encode
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs, concatenate
from data.tokenizer import Tokenizer, train_or_load_tokenizer

WORD = re.compile(r"\w+(?:[-'’]\w+)*")
BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Text:
    """One side of a split: its sentences, their lengths, their tokens with EOS, and the count of each word."""

    sentences: Sequence[str]
    characters: Int[np.ndarray, " P"]
    words: Int[np.ndarray, " P"]
    tokens: TokenTable
    word_counts: Counter[str]

    def distinct(self) -> int:
        """The number of different sentences."""
        return len(set(self.sentences))

    def tokens_per_word(self) -> float:
        """Tokens per word, without EOS."""
        return float(self.tokens.length.sum() - len(self.sentences)) / max(1, self.word_counts.total())


class LengthSummary(NamedTuple):
    """A summary of lengths; the percentiles are lengths that occur."""

    mean: float
    median: int
    percentile_95: int
    longest: int


class Spelling(NamedTuple):
    """The shares of a text's tokens that spell a single byte, or are unknown."""

    byte_share: float
    unknown_share: float


class UnseenWords(NamedTuple):
    """The words of a text that another text lacks: their share of all its words, and each, most frequent first."""

    share: float
    words: list[str]


class PackingSummary(NamedTuple):
    """An epoch of batches: ``real`` counts the tokens without padding, ``room`` all places, on each side."""

    steps: int
    rows: int
    pairs: int
    real: tuple[int, int]
    room: tuple[int, int]

    def fill(self) -> tuple[float, float]:
        """The share of real tokens on each side."""
        return self.real[0] / self.room[0], self.real[1] / self.room[1]

    def fill_of_single_pairs(self) -> tuple[float, float]:
        """What ``fill`` would be with one pair per row."""
        source, target = self.fill()
        return source * self.rows / self.pairs, target * self.rows / self.pairs


@dataclass(frozen=True)
class Card:
    """A corpus as training would see it, and the text of both sides of every split."""

    config: DataConfig
    tokenizer_config: TokenizerConfig
    corpus: Corpus
    tokenizer: Tokenizer
    stream: BatchStream
    texts: dict[str, tuple[Text, Text]]


def build_card(config: DataConfig, tokenizer_config: TokenizerConfig, seed: int, run_dir: Path) -> Card:
    """The corpus, tokenizer and batches that ``prepare`` would return; nothing is written."""
    corpus = assemble(config, run_dir)
    training = concatenate(corpus.sources)
    tokenizer = train_or_load_tokenizer(run_dir, training, tokenizer_config)
    stream = BatchStream(training, tokenizer, config, seed, weights=pair_weights(config, corpus.sources))
    encoded = stream.encoded
    source = count_text(encoded.texts.sources, encoded.sources)
    target = count_text(encoded.texts.targets, encoded.targets)
    texts = {"train": (source, target)}
    for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
        source, target = (count_text(side, encode(tokenizer, side)) for side in (pairs.sources, pairs.targets))
        texts[split] = source, target
    return Card(config, tokenizer_config, corpus, tokenizer, stream, texts)


def count_text(sentences: Sequence[str], tokens: TokenTable) -> Text:
    """Find the words and count."""
    word_counts: Counter[str] = Counter()
    lengths = np.zeros((2, len(sentences)), dtype=np.int64)
    for index, sentence in enumerate(sentences):
        words = WORD.findall(sentence.lower())
        word_counts.update(words)
        lengths[:, index] = len(sentence), len(words)
    return Text(sentences, lengths[0], lengths[1], tokens, word_counts)


def summarise_lengths(values: Int[np.ndarray, " P"]) -> LengthSummary:
    median, percentile_95 = np.percentile(values, [50, 95], method="inverted_cdf")
    return LengthSummary(float(values.mean()), int(median), int(percentile_95), int(values.max()))


def length_ratios(sources: Int[np.ndarray, " P"], targets: Int[np.ndarray, " P"]) -> Float[np.ndarray, "3"]:
    """The 5th, 50th and 95th percentile of target length ÷ source length; an empty side counts as length 1."""
    return np.percentile(np.maximum(targets, 1) / np.maximum(sources, 1), [5, 50, 95])


def length_histogram(values: Int[np.ndarray, " P"], width: int, bins: int) -> Float[np.ndarray, " bins"]:
    """The shares of the lengths 1 to ``width``, the next ``width`` and so on; the last bin has all longer ones."""
    which = np.clip((values - 1) // width, 0, bins - 1)
    return np.bincount(which, minlength=bins) / max(1, len(values))


def token_ids(table: TokenTable) -> Int32[np.ndarray, " tokens"]:
    """The tokens of the table's sentences, in the order of the flat array, which may have others between them."""
    edges = np.zeros(len(table.flat) + 1, dtype=np.int8)
    edges[table.start] = 1
    edges[table.start + table.length] -= 1
    return table.flat[np.cumsum(edges[:-1], dtype=np.int8) > 0]


def count_pieces(text: Text, vocab_size: int) -> Int[np.ndarray, " V"]:
    """How often a text has each piece."""
    return np.bincount(token_ids(text.tokens), minlength=vocab_size)


def byte_pieces(tokenizer: Tokenizer) -> Bool[np.ndarray, " V"]:
    """Which pieces spell one byte of a character that has no piece of its own."""
    return np.array([bool(BYTE.fullmatch(piece)) for piece in tokenizer.pieces(list(range(tokenizer.vocab_size)))])


def measure_spelling(counts: Int[np.ndarray, " V"], is_byte: Bool[np.ndarray, " V"]) -> Spelling:
    """The shares of byte pieces and unknowns among a text's piece counts."""
    total = max(1, int(counts.sum()))
    return Spelling(float(counts[is_byte].sum()) / total, float(counts[UNK]) / total)


def find_unseen_words(training: Counter[str], words: Counter[str]) -> UnseenWords:
    """The words that training lacks, which the model has never seen spelled."""
    unseen = {word: count for word, count in words.items() if word not in training}
    by_count = sorted(unseen, key=lambda word: (-unseen[word], word))
    return UnseenWords(sum(unseen.values()) / max(1, words.total()), by_count)


def select_fitting(sources: Sequence[Pairs], stream: BatchStream) -> list[Pairs]:
    """The pairs of each source that fit a row."""
    texts = stream.encoded.texts
    fitting = set(zip(texts.sources, texts.targets, strict=True))  # equal pairs are equally long
    return [
        pairs.select(np.array([pair in fitting for pair in zip(pairs.sources, pairs.targets, strict=True)]))
        for pairs in sources
    ]


def epoch_shares(pairs: Sequence[int], weights: Sequence[float]) -> Float[np.ndarray, " sources"]:
    """The average share of each source in an epoch's visits."""
    visits = np.array(pairs) * np.array(weights)
    return visits / visits.sum()


def measure_packing(stream: BatchStream) -> PackingSummary:
    """Count through the first epoch, packing every window once."""
    steps, pairs, rows = 0, 0, 0
    real = np.zeros(2, dtype=np.int64)
    while pairs < stream.visits(0):
        batch = stream.batch(steps)
        steps += 1
        pairs += int(batch.source_segments.max(axis=1).sum())  # a row's segments are numbered from 1
        rows += int(batch.source_segments.any(axis=1).sum())
        real += [np.count_nonzero(batch.source_segments), np.count_nonzero(batch.target_segments)]
    source_room, target_room = (rows * length for length in stream.row_lengths)
    return PackingSummary(steps, rows, pairs, (int(real[0]), int(real[1])), (source_room, target_room))


def sample_pairs(pairs: Pairs, count: int) -> list[tuple[str, str]]:
    """Pairs from short to long, evenly spaced in the order of lengths; always the same ones."""
    lengths = [len(source) + len(target) for source, target in zip(pairs.sources, pairs.targets, strict=True)]
    order = np.argsort(lengths, kind="stable")
    count = min(count, len(pairs))
    chosen = [int(order[(2 * i + 1) * len(pairs) // (2 * count)]) for i in range(count)]
    return [(pairs.sources[index], pairs.targets[index]) for index in chosen]
