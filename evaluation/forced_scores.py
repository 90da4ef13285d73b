"""Forced decoding of existing translations: the probability of each token, and word alignment.

B batch row · T target position · S source position
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from common.errors import UserError, explain_lack_of_memory
from common.special_tokens import EOS
from data.long_lines import split_sentences
from data.pairs import PUNCTUATION, normalise
from data.tokens.tokenizer import Tokenizer
from evaluation.buckets import group_by_bucket
from evaluation.over_devices import jit_on_rows, mesh_of, shard_rows
from evaluation.translate import Ensemble, Translation, Translator, pad_rows, read
from model.decoding.forced import alignment_weights, token_log_probs
from model.decoding.settings import Ranking

Pair = tuple[list[int], list[int]]  # source and target tokens, both without EOS
Words = list[tuple[str, range]]  # the text and the token positions of each word


@dataclass(frozen=True)
class ForcedScore:
    """The log-probability of a translation in nats, including EOS, and figures derived from it."""

    log_prob: float
    score: float  # the score that a search would give it, without coverage
    perplexity: float  # per token
    tokens: list[str]
    token_log_probs: list[float]


class Aligned(NamedTuple):
    """The words of both sides, and for each target word the source word with the most attention, counted from 0."""

    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int]]  # source word, target word


def score_translations(
    translator: Translator, params: Ensemble, pairs: list[tuple[str, str]], first: int = 1
) -> list[ForcedScore]:
    """Score each source's translation, however long; UserError for more tokens than the model has learned positions.

    If a search would translate the source in pieces, and the translation has the same number of sentences, each
    sentence is scored given its own piece. The error counts pairs from ``first``.
    """
    tokenizer = translator.tokenizer
    paired = [pair_sentences(translator, *pair) for pair in pairs]
    sources, targets = map(list, zip(*chain.from_iterable(paired), strict=True))
    encoded = list(zip(translator.encode_sources(sources), tokenizer.encode(targets), strict=True))
    numbers = [number for number, sentences in enumerate(paired, start=first) for _ in sentences]
    forced = force(translator, params, encoded, token_log_probs, numbers)
    return [_score(translator, list(islice(forced, len(sentences)))) for sentences in paired]


def score_tokens(translator: Translator, params: Ensemble, pairs: list[Pair]) -> list[ForcedScore]:
    """Score each pair of source and target tokens."""
    return [_score(translator, [forced]) for forced in force(translator, params, pairs, token_log_probs)]


def pair_sentences(translator: Translator, source: str, target: str) -> list[tuple[str, str]]:
    """The pieces of the source with the sentences of the target if their numbers match, else both whole texts."""
    pieces, whole = translator.pieces(source), normalise(target)
    sentences = split_sentences(whole, translator.target)
    return list(zip(pieces, sentences, strict=True)) if len(pieces) == len(sentences) else [(read(source), whole)]


def _score(translator: Translator, sentences: list[tuple[Pair, np.ndarray]]) -> ForcedScore:
    """Sum over sentences, as a search does."""
    settings = translator.decoding
    ranking = Ranking(settings.normalization, settings.length_penalty)
    rows = [row[: len(target) + 1].tolist() for (_, target), row in sentences]
    scores = [math.fsum(row) / float(ranking.divisor(jnp.array(len(row)))) for row in rows]
    tokens = [token for (_, target), _ in sentences for token in translator.tokenizer.pieces([*target, EOS])]
    log_probs = list(chain.from_iterable(rows))
    total = math.fsum(log_probs)
    return ForcedScore(total, math.fsum(scores), math.exp(-total / len(log_probs)), tokens, log_probs)


def align(translator: Translator, params: Ensemble, translations: list[Translation]) -> list[Aligned]:
    """Align the words of each translation with those of its source, piece by piece."""
    pairs = [pair for each in translations for pair in zip(each.sources, each.targets, strict=True)]
    forced, found = force(translator, params, pairs, alignment_weights), []
    for each in translations:
        line = Aligned([], [], [])
        for (source, target), attention_weights in islice(forced, len(each.sources)):
            source_words, target_words = (spell_words(side, translator.tokenizer) for side in (source, target))
            before = len(line.source_words), len(line.target_words)
            links = align_words(source_words, target_words, attention_weights)
            line.alignment.extend((source + before[0], target + before[1]) for source, target in links)
            line.source_words.extend(text for text, _ in source_words)
            line.target_words.extend(text for text, _ in target_words)
        found.append(line)
    return found


def spell_words(tokens: list[int], tokenizer: Tokenizer) -> list[tuple[str, range]]:
    """The text and token positions of each word, without punctuation at its ends, but with a space token before it."""
    pieces, texts = tokenizer.pieces(tokens), tokenizer.decode([[token] for token in tokens])
    starts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith("␣")]
    whole = [range(start, stop) for start, stop in zip(starts, [*starts[1:], len(pieces)], strict=False)]
    cores = [span[core(texts[span.start : span.stop])] for span in whole]
    spans = [range(span.start - (pieces[span.start - 1 : span.start] == ["␣"]), span.stop) for span in cores]
    words = map(normalise, tokenizer.decode([tokens[span.start : span.stop] for span in spans]))
    return [(word, span) for word, span in zip(words, spans, strict=True) if word]


def core(parts: Sequence[str]) -> slice:
    """The slice from the first to the last part with a letter or a digit; all parts if none has one."""
    # A byte of a multi-byte letter decodes to U+FFFD, which must count as a letter although it is a symbol.
    bare = [part.replace("\ufffd", "letter").translate(PUNCTUATION).strip() for part in parts]
    places = [place for place, part in enumerate(bare) if part]
    return slice(places[0], places[-1] + 1) if places else slice(None)


def align_words(sources: Words, targets: Words, attention_weights: Float[np.ndarray, "T S"]) -> list[tuple[int, int]]:
    """Align each target word by its weights: the mean over its tokens of the sum over the source word's tokens."""
    by_source = [attention_weights[:, span.start : span.stop].sum(axis=1) for _, span in sources]
    words = enumerate(targets if by_source else [])
    means = ((index, [column[span.start : span.stop].mean() for column in by_source]) for index, (_, span) in words)
    return [(int(np.argmax(weights)), index) for index, weights in means]


def force(
    translator: Translator,
    params: Ensemble,
    pairs: list[Pair],
    function: Callable[..., Array],
    numbers: Sequence[int] = (),  # of the pairs, for error messages
) -> Iterator[tuple[Pair, np.ndarray]]:
    """Each pair with its row of a function from ``model/decoding/forced.py``; batches have the shapes of a search."""
    if not pairs:
        return iter(())
    lengths = [max(1, *map(len, pair)) + 1 for pair in pairs]  # with EOS; a sentence of length 1 is in no batch
    numbers = numbers or range(1, len(pairs) + 1)
    for number, length in zip(numbers, lengths, strict=True):
        if length > (end := translator.positions):
            raise UserError(f"pair {number} has {length} tokens, but this model's learned positions end at {end}")
    models, mesh, found = tuple(map(nnx.merge, translator.graphdefs, params)), mesh_of(params), dict[int, np.ndarray]()
    longest = f"pair {numbers[lengths.index(max(lengths))]}, of {max(lengths)} tokens"
    with explain_lack_of_memory(f"make decoding.batch_sentences smaller, or leave out {longest}"):
        for shape, indices in group_by_bucket(lengths, translator.decoding.batch_sentences, mesh.size if mesh else 1):
            sides = zip(*(pairs[index] for index in indices), strict=True)
            rows = [shard_rows(pad_rows([[*tokens, EOS] for tokens in side], shape), mesh) for side in sides]
            found.update(zip(indices, np.asarray(jit_on_rows(function, mesh, models, *rows)), strict=False))
    return ((pair, found[index]) for index, pair in enumerate(pairs))
