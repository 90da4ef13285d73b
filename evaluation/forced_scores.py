"""Given translations: how likely the model finds them, token by token, and which words it aligns with which."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int

from common.errors import UserError
from common.special_tokens import EOS
from data.pairs import normalise
from data.tokenizer import Tokenizer
from evaluation.attention_view.word_pairs import spans_of
from evaluation.translate import Translation, Translator, batches, rows, rows_of
from model.decoding.forced import alignment_weights, token_log_probs
from model.transformer import Params, Transformer

Pair = tuple[list[int], list[int]]  # source and target tokens, both without EOS


class Aligned(NamedTuple):
    """The words of both sides, and for each target word the source word that it takes most from, as numbers from 0."""

    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int]]  # source word, target word


def log_probs(translator: Translator, params: Sequence[Params], pairs: list[Pair]) -> list[list[float]]:
    """log P of every target token and of EOS after them, given the source; nothing is too long to be scored.

    UserError for more tokens than the model has learned positions.
    """
    return [found[: len(target) + 1].tolist() for (_, target), found in _each(translator, params, pairs, score_batch)]


def align(translator: Translator, params: Sequence[Params], translation: list[Translation]) -> list[Aligned]:
    """The words of each translation and of its source, aligned piece by piece."""
    pairs = [pair for each in translation for pair in zip(each.sources, each.targets, strict=True)]
    found = (weights for _, weights in _each(translator, params, pairs, align_batch))
    of_piece = (_align_words(translator.tokenizer, *pair, next(found)) for pair in pairs)
    return [_joined([next(of_piece) for _ in each.sources]) for each in translation]


def _align_words(tokenizer: Tokenizer, source: list[int], target: list[int], weights: np.ndarray) -> Aligned:
    """The weight between words: the mean over the target word's tokens of the sum over the source word's."""
    (source_words, source_spans), (target_words, target_spans) = (
        words_of(each, tokenizer) for each in (source, target)
    )
    by_source = [weights[:, span.start : span.stop].sum(axis=1) for span in source_spans]
    alignment = [
        (int(np.argmax([column[span.start : span.stop].mean() for column in by_source])), number)
        for number, span in enumerate(target_spans)
        if by_source
    ]
    return Aligned(source_words, target_words, alignment)


def words_of(tokens: list[int], tokenizer: Tokenizer) -> tuple[list[str], list[range]]:
    """Words without the punctuation at their ends, and their tokens' places."""
    spans = spans_of(tokens, tokenizer)
    texts = [normalise(text) for text in tokenizer.decode([tokens[span.start : span.stop] for span in spans])]
    kept = [(text, span) for text, span in zip(texts, spans, strict=True) if text]
    return [text for text, _ in kept], [span for _, span in kept]


def _joined(pieces: list[Aligned]) -> Aligned:
    whole = Aligned([], [], [])
    for source_words, target_words, alignment in pieces:
        sources, targets = len(whole.source_words), len(whole.target_words)
        moved = [(source + sources, target + targets) for source, target in alignment]
        whole = Aligned(whole.source_words + source_words, whole.target_words + target_words, whole.alignment + moved)
    return whole


def _each(
    translator: Translator, params: Sequence[Params], pairs: list[Pair], compute: Callable[..., Array]
) -> Iterator[tuple[Pair, np.ndarray]]:
    """Every pair with its row of ``compute``, in their order; batches have the fixed shapes of translating."""
    lengths = [max(map(len, pair)) + 1 for pair in pairs]
    for number, length in enumerate(lengths, start=1):
        if length > translator.positions:
            raise UserError(
                f"pair {number} has {length} tokens, and this model's learned positions end at {translator.positions}"
            )
    found: dict[int, np.ndarray] = {}
    size = translator.decoding.batch_sentences
    for bucket, indices in batches([max(length, 2) for length in lengths], size):
        sides = zip(*(pairs[index] for index in indices), strict=True)
        filled = [rows([[*tokens, EOS] for tokens in side], (rows_of(bucket, size), bucket)) for side in sides]
        found.update(zip(indices, np.asarray(compute(translator.graphdefs, tuple(params), *filled)), strict=False))
    return ((pair, found[index]) for index, pair in enumerate(pairs))


@partial(jax.jit, static_argnames="graphdefs")
def score_batch(
    graphdefs: tuple[nnx.GraphDef[Transformer], ...],
    params: tuple[Params, ...],
    source_tokens: Int[Array, "B S"],
    target_tokens: Int[Array, "B T"],
) -> Float[Array, "B T"]:
    """``token_log_probs``, compiled once per shape."""
    models = tuple(nnx.merge(graphdef, each) for graphdef, each in zip(graphdefs, params, strict=True))
    return token_log_probs(models, source_tokens, target_tokens)


@partial(jax.jit, static_argnames="graphdefs")
def align_batch(
    graphdefs: tuple[nnx.GraphDef[Transformer], ...],
    params: tuple[Params, ...],
    source_tokens: Int[Array, "B S"],
    target_tokens: Int[Array, "B T"],
) -> Float[Array, "B T S"]:
    """``alignment_weights``, compiled once per shape."""
    models = tuple(nnx.merge(graphdef, each) for graphdef, each in zip(graphdefs, params, strict=True))
    return alignment_weights(models, source_tokens, target_tokens)
