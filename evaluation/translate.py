"""Text → text: sentences are grouped by length into a few compiled shapes, searched, and put back in order."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Int
from tqdm import tqdm

from data.errors import UserError
from data.pairs import normalise
from data.tokenizer import EOS, PAD, Tokenizer
from model.config import DecodingConfig, ModelConfig
from model.search import Hypotheses, beam_search, greedy
from model.transformer import Params, Transformer, build

BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128)  # source tokens with EOS; longer ones go to powers of two


@dataclass(frozen=True)
class Translator:
    """A model's shape, its tokenizer and its search settings.

    Parameters are an argument, so one Translator serves every evaluation of a run and compiles each bucket once.
    A sentence's bucket and limit depend on that sentence alone, and a bucket's batch has a fixed shape. Attention is
    computed by its definition, so that a run translates alike wherever and with whatever kernel it was trained.
    """

    model: ModelConfig
    tokenizer: Tokenizer
    decoding: DecodingConfig

    @cached_property
    def graphdef(self) -> nnx.GraphDef[Transformer]:
        """The model's structure; see ``model.transformer.build``."""
        return build(replace(self.model, kernel="definition"), self.tokenizer.vocab_size)

    @property
    def longest(self) -> float:
        """Tokens, EOS counted, that a sentence may have: as many as the model has learned positions."""
        return self.model.max_positions if self.model.positions == "learned" else math.inf

    def translate(self, params: Params, sentences: list[str], *, progress: bool = False) -> list[str]:
        """One normalised translation per sentence; an empty sentence gives an empty one."""
        sources = self.tokenizer.encode([normalise(sentence) for sentence in sentences])
        return self.spell(self.search(params, sources, progress=progress))

    def spell(self, translations: list[list[int]]) -> list[str]:
        """The text of tokens, normalised like all text here: a model may spell line feeds out of bytes."""
        return [normalise(text) for text in self.tokenizer.decode(translations)]

    def search(self, params: Params, sources: list[list[int]], *, progress: bool = False) -> list[list[int]]:
        """The target tokens for each source's tokens, both without BOS and EOS.

        Nothing is too long, unless the model has learned positions: UserError beyond these. ``progress`` shows a bar
        on standard error, if that is a terminal.
        """
        translations: list[list[int]] = [[] for _ in sources]
        self._refuse_too_long(sources)
        with tqdm(total=len(sources), unit="sentence", leave=False, disable=None if progress else True) as bar:
            for bucket, indices in batches([len(source) + 1 for source in sources], self.decoding.batch_sentences):
                rows = np.full((rows_of(bucket, self.decoding.batch_sentences), bucket), PAD, np.int32)
                for row, index in zip(rows, indices, strict=False):
                    row[: len(sources[index]) + 1] = [*sources[index], EOS]
                found = self._search(params, rows)
                lengths = np.asarray(found.lengths) - np.asarray(found.ended)
                for index, tokens, length in zip(indices, np.asarray(found.tokens), lengths, strict=False):
                    translations[index] = tokens[:length].tolist()
                bar.update(len(indices))
        return translations

    def _refuse_too_long(self, sources: list[list[int]]) -> None:
        for number, source in enumerate(sources, start=1):
            if len(source) + 1 > self.longest:
                raise UserError(
                    f"sentence {number} has {len(source) + 1} tokens, and this model's learned positions end at "
                    f"{self.longest} (model.max_positions): split it"
                )

    def limit(self, length: int) -> int:
        """How many tokens the translation of a source of ``length`` tokens may have; EOS counts in both."""
        return int(min(length * self.decoding.max_length_factor + self.decoding.max_length_extra, self.longest))

    def _search(self, params: Params, rows: Int[np.ndarray, "B S"]) -> Hypotheses:
        found: Hypotheses = search_batch(
            self.graphdef,
            params,
            rows,
            np.array([self.limit(length) for length in (rows != PAD).sum(axis=1).tolist()], np.int32),
            beam_size=self.decoding.beam_size,
            length_penalty=self.decoding.length_penalty,
            max_length=self.limit(rows.shape[1]),
        )
        return found


@partial(jax.jit, static_argnames=("graphdef", "beam_size", "length_penalty", "max_length"))
def search_batch(
    graphdef: nnx.GraphDef[Transformer],
    params: Params,
    source_tokens: Int[Array, "B S"],
    limits: Int[Array, " B"],
    *,
    beam_size: int,
    length_penalty: float,
    max_length: int,
) -> Hypotheses:
    """Greedy or beam search of one batch, compiled once per shape and settings; PAD marks where a source ends."""
    model = nnx.merge(graphdef, params)
    segments = (source_tokens != PAD).astype("int32")
    if beam_size == 1:
        return greedy(model, source_tokens, segments, limits, max_length=max_length)
    return beam_search(
        model,
        source_tokens,
        segments,
        limits,
        beam_size=beam_size,
        length_penalty=length_penalty,
        max_length=max_length,
    )


def bucket_of(length: int) -> int:
    """The padded length of a source of ``length`` tokens."""
    return next((bucket for bucket in BUCKETS if length <= bucket), 1 << (length - 1).bit_length())


def rows_of(bucket: int, batch_sentences: int) -> int:
    """Sentences searched together: fewer of the very long, so that a batch never has many times the usual memory."""
    return max(1, batch_sentences * BUCKETS[-1] // max(bucket, BUCKETS[-1]))


def batches(lengths: list[int], batch_sentences: int) -> Iterator[tuple[int, list[int]]]:
    """Each bucket in turn with the indices of up to a batch of its sentences, shortest first.

    Lengths count EOS: a sentence of length 1 is empty and is in no batch.
    """
    order = sorted((index for index, length in enumerate(lengths) if length > 1), key=lengths.__getitem__)
    for bucket, group in groupby(order, key=lambda index: bucket_of(lengths[index])):
        indices = list(group)
        size = rows_of(bucket, batch_sentences)
        yield from ((bucket, indices[start : start + size]) for start in range(0, len(indices), size))
