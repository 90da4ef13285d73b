"""Forced decoding of existing translations: the probability of each token, and the alignment of words.

B batch row · T target position · S source position
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int

from common.errors import UserError
from common.special_tokens import EOS
from data.pairs import normalise
from data.tokenizer import Tokenizer
from evaluation.attention_view.word_pairs import spell_words
from evaluation.translate import Translation, Translator, batch_size, group_by_bucket, pad_rows
from model.decoding.forced import alignment_weights, token_log_probs
from model.decoding.settings import Ranking
from model.transformer import Params, Transformer

Pair = tuple[list[int], list[int]]  # source and target tokens, both without EOS


@dataclass(frozen=True)
class ForcedScore:
    """The log-probability of a translation in nats, EOS included, and what follows from it."""

    log_prob: float
    score: float  # what a search would give it, without coverage
    perplexity: float  # per token
    tokens: list[str]
    token_log_probs: list[float]


class Aligned(NamedTuple):
    """The words of both sides, and for each target word the source word with the most attention, counted from 0."""

    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int]]  # source word, target word


def score_translations(
    translator: Translator, params: Sequence[Params], pairs: list[tuple[str, str]]
) -> list[ForcedScore]:
    """Score each source's translation; long ones are scored whole.

    UserError for more tokens than the model has learned positions.
    """
    tokenizer, settings = translator.tokenizer, translator.decoding
    sources, targets = (tokenizer.encode([normalise(text) for text in side]) for side in zip(*pairs, strict=True))
    ranking, scores = Ranking(settings.normalization, settings.length_penalty), []
    for (_, target), row in force(translator, params, list(zip(sources, targets, strict=True)), token_log_probs):
        log_probs = row[: len(target) + 1].tolist()
        total = math.fsum(log_probs)
        score = total / float(ranking.divisor(jnp.array(len(log_probs))))
        tokens = tokenizer.pieces([*target, EOS])
        scores.append(ForcedScore(total, score, math.exp(-total / len(log_probs)), tokens, log_probs))
    return scores


def align(translator: Translator, params: Sequence[Params], translations: list[Translation]) -> list[Aligned]:
    """Align the words of each translation with those of its source, piece by piece."""
    pairs = [pair for each in translations for pair in zip(each.sources, each.targets, strict=True)]
    forced = force(translator, params, pairs, alignment_weights)
    pieces = (align_words(translator.tokenizer, *pair, attention_weights) for pair, attention_weights in forced)
    return [concatenate(islice(pieces, len(each.sources))) for each in translations]


def align_words(
    tokenizer: Tokenizer, source: list[int], target: list[int], attention_weights: Float[np.ndarray, "T S"]
) -> Aligned:
    """The weight between words is the mean over the target word's tokens of the sum over the source word's."""
    source_words, target_words = spell_words(source, tokenizer), spell_words(target, tokenizer)
    by_source = [attention_weights[:, span.start : span.stop].sum(axis=1) for _, span in source_words]
    alignment = [
        (int(np.argmax([column[span.start : span.stop].mean() for column in by_source])), index)
        for index, (_, span) in enumerate(target_words)
        if by_source
    ]
    return Aligned([text for text, _ in source_words], [text for text, _ in target_words], alignment)


def concatenate(pieces: Iterable[Aligned]) -> Aligned:
    whole = Aligned([], [], [])
    for piece in pieces:
        sources, targets = len(whole.source_words), len(whole.target_words)
        whole.alignment.extend((source + sources, target + targets) for source, target in piece.alignment)
        whole.source_words.extend(piece.source_words)
        whole.target_words.extend(piece.target_words)
    return whole


def force(
    translator: Translator, params: Sequence[Params], pairs: list[Pair], function: Callable[..., Array]
) -> Iterator[tuple[Pair, np.ndarray]]:
    """Each pair with its row of a function of ``model/decoding/forced.py``; batches have the shapes of translating."""
    lengths, batch_sentences = [max(map(len, pair)) + 1 for pair in pairs], translator.decoding.batch_sentences
    for number, length in enumerate(lengths, start=1):
        if length > translator.positions:
            raise UserError(
                f"pair {number} has {length} tokens, but this model's learned positions end at {translator.positions}"
            )
    found: dict[int, np.ndarray] = {}
    for bucket, indices in group_by_bucket([max(length, 2) for length in lengths], batch_sentences):
        shape = batch_size(bucket, batch_sentences), bucket
        sides = zip(*(pairs[index] for index in indices), strict=True)
        rows = [pad_rows([[*tokens, EOS] for tokens in side], shape) for side in sides]
        result = force_batch(function, translator.graphdefs, tuple(params), *rows)
        found.update(zip(indices, np.asarray(result), strict=False))
    return ((pair, found[index]) for index, pair in enumerate(pairs))


@partial(jax.jit, static_argnames=("function", "graphdefs"))
def force_batch(
    function: Callable[..., Array],
    graphdefs: tuple[nnx.GraphDef[Transformer], ...],
    params: tuple[Params, ...],
    source_tokens: Int[Array, "B S"],
    target_tokens: Int[Array, "B T"],
) -> Float[Array, "B T *S"]:
    """Apply the function to a batch, compiled once per shape."""
    models = tuple(nnx.merge(graphdef, each) for graphdef, each in zip(graphdefs, params, strict=True))
    return function(models, source_tokens, target_tokens)
