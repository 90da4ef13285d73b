"""Text → text: sentences are grouped by length into a few compiled shapes, searched, and put back in order."""

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, groupby, islice
from typing import NamedTuple

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, UInt32

from common.errors import UserError
from common.special_tokens import EOS, PAD
from data.pairs import normalise
from data.tokenizer import Tokenizer
from evaluation.long_lines import cut, join
from evaluation.minimum_risk import choose, probabilities
from model.config import DecodingConfig, ModelConfig
from model.decoding.beam import beam_search
from model.decoding.hypotheses import Hypotheses, Sources
from model.decoding.ranking import Ranking
from model.decoding.sampling import greedy, sample
from model.decoding.settings import Sampling, SearchSettings
from model.sharding import replicate
from model.transformer import Params, Tokens, Transformer, build

BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128)  # source tokens with EOS; longer ones go to powers of two

Advance = Callable[[int], object]  # what it returns is not used


def do_nothing(count: int) -> None:
    """For those who do not watch."""


class Hypothesis(NamedTuple):
    """What a search found: tokens without EOS, and whether EOS came before the limit."""

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Translation:
    """One translation of a line: its text, and the tokens of each piece that was translated by itself.

    A line has one piece, unless it is too long for the model, and an empty one none. The numbers are sums over pieces.
    """

    text: str
    sources: list[list[int]]
    targets: list[list[int]]
    log_prob: float
    score: float
    ended: bool

    @property
    def length(self) -> int:
        """Target tokens, without EOS."""
        return sum(map(len, self.targets))


@dataclass(frozen=True)
class Translator:
    """The shapes of one model, or of several that translate together, their tokenizer and search settings.

    Parameters are an argument, a tree for each model, so one Translator serves every evaluation of a run and compiles
    each bucket once. A sentence's bucket and limit depend on that sentence alone, and a bucket's batch has a fixed
    shape. Attention is computed by its definition, so that a run translates alike wherever and with whatever kernel it
    was trained.
    """

    models: tuple[ModelConfig, ...]
    tokenizer: Tokenizer
    decoding: DecodingConfig
    row_length: int  # tokens of the longest sentence that training had

    @cached_property
    def graphdefs(self) -> tuple[nnx.GraphDef[Transformer], ...]:
        """The models' structures; see ``model.transformer.build``."""
        return tuple(build(replace(model, kernel="definition"), self.tokenizer.vocab_size) for model in self.models)

    @property
    def positions(self) -> float:
        """Tokens, EOS counted, that either side may have: as many as the models have learned positions."""
        tables = [float(model.max_positions) for model in self.models if model.positions == "learned"]
        return min(tables, default=math.inf)

    @property
    def longest(self) -> int:
        """Tokens, EOS counted, of a source that is translated in one piece."""
        return int(min(self.decoding.max_source_tokens or self.row_length, self.positions))

    def limit(self, length: int) -> int:
        """How many tokens the translation of a source of ``length`` tokens may have; EOS counts in both."""
        return int(min(length * self.decoding.max_length_factor + self.decoding.max_length_extra, self.positions))

    def translate(
        self, params: Sequence[Params], lines: list[str], *, prefix: str = "", advance: Advance = do_nothing
    ) -> list[Translation]:
        """One translation per line, the search's best or by minimum Bayes risk; an empty line gives an empty one.

        See ``candidates`` for the other arguments.
        """
        by_risk = self.decoding.mbr != "none"
        count = (self.decoding.candidates or self.decoding.beam_size) if by_risk else 1
        found = self.candidates(params, lines, count, prefix=prefix, advance=advance)
        return [self._least_risk(of_line) if by_risk else of_line[0] for of_line in found]

    def _least_risk(self, found: list[Translation]) -> Translation:
        """Of candidates, samples stand for themselves; those of a beam count by their probabilities."""
        sampled, log_probs = self.decoding.search == "sample", [each.log_prob for each in found]
        weights = [1.0] * len(found) if sampled else probabilities(log_probs)
        return found[choose([each.text for each in found], weights, self.decoding.mbr)]

    def candidates(
        self, params: Sequence[Params], lines: list[str], count: int, *, prefix: str = "", advance: Advance = do_nothing
    ) -> list[list[Translation]]:
        """Up to ``count`` translations of each line, best first, or as drawn; all of them begin with ``prefix``.

        ``advance`` is called with the number of pieces translated since its last call. UserError for a prefix that
        leaves a sentence no room.
        """
        pieces = [self.pieces(line) for line in lines]
        sources = [self.tokenizer.encode(of_line) for of_line in pieces]
        begun = self.tokenizer.encode([normalise(prefix)])[0]
        prefixes = [begun if number == 0 else [] for of_line in pieces for number in range(len(of_line))]
        flat = list(chain.from_iterable(sources))
        found = iter(self.search(params, flat, count, prefixes=prefixes, advance=advance))
        return [self._join(of_line, list(islice(found, len(of_line))), count) for of_line in sources]

    def pieces(self, line: str) -> list[str]:
        """A line as it is translated: whole where it fits, cut at sentence ends where not, nothing of an empty one."""

        def count(texts: list[str]) -> list[int]:
            return [len(tokens) + 1 for tokens in self.tokenizer.encode(texts)]

        text = normalise(line)
        return cut(text, self.longest, count) if text else []

    def _join(self, sources: list[list[int]], found: list[list[Hypothesis]], count: int) -> list[Translation]:
        """Whole translations out of those of the pieces: the best combinations, or the draws side by side."""
        if self.decoding.search == "sample":
            return [self._whole(sources, list(chosen)) for chosen in zip(*found, strict=True)] or [self._whole([], [])]
        combinations: list[list[Hypothesis]] = [[]]
        for of_piece in found:
            extended = [[*combination, each] for combination in combinations for each in of_piece]
            combinations = sorted(extended, key=lambda chosen: -math.fsum(each.score for each in chosen))[:count]
        if not combinations:
            raise UserError("the model finds no translation likely, not even a little: its parameters are not finite")
        return [self._whole(sources, combination) for combination in combinations]

    def _whole(self, sources: list[list[int]], chosen: list[Hypothesis]) -> Translation:
        targets = [each.tokens for each in chosen]
        return Translation(
            text=join(self.spell(targets)),
            sources=sources,
            targets=targets,
            log_prob=math.fsum(each.log_prob for each in chosen),
            score=math.fsum(each.score for each in chosen),
            ended=all(each.ended for each in chosen),
        )

    def spell(self, translations: list[list[int]]) -> list[str]:
        """The text of tokens, normalised like all text here: a model may spell line feeds out of bytes."""
        return [normalise(text) for text in self.tokenizer.decode(translations)]

    def search(
        self,
        params: Sequence[Params],
        sources: list[list[int]],
        count: int,
        *,
        prefixes: list[list[int]] | None = None,
        advance: Advance = do_nothing,
    ) -> list[list[Hypothesis]]:
        """Up to ``count`` hypotheses for each source's tokens, without BOS and EOS; one for a source that is empty."""
        found: list[list[Hypothesis]] = [[Hypothesis([], 0.0, 0.0, True)] for _ in sources]
        prefixes = prefixes or [[] for _ in sources]
        lengths = [len(source) + 1 for source in sources]
        for bucket, indices in batches(lengths, self.decoding.batch_sentences):
            chosen = [sources[index] for index in indices], [prefixes[index] for index in indices]
            for index, hypotheses in zip(indices, self._search(params, bucket, *chosen, count), strict=True):
                found[index] = hypotheses
            advance(len(indices))
        return found

    def _search(
        self,
        params: Sequence[Params],
        bucket: int,
        sources: list[list[int]],
        prefixes: list[list[int]],
        count: int,
    ) -> list[list[Hypothesis]]:
        """One batch, filled up with empty rows."""
        size, settings = rows_of(bucket, self.decoding.batch_sentences), self.decoding
        limits = [self.limit(len(source) + 1) for source in sources]
        found: Hypotheses = search_batch(
            self.graphdefs,
            tuple(params),
            rows([[*source, EOS] for source in sources], (size, bucket)),
            np.array(limits + [0] * (size - len(limits)), np.int32),
            self._prefix_rows(prefixes, limits, (size, self.limit(bucket))),
            numbers_of(sources, size),
            np.uint32(settings.seed),
            search_settings(settings, count, self.limit(bucket)),
        )
        return list(islice(hypotheses_of(found), len(sources)))

    def _prefix_rows(
        self, prefixes: list[list[int]], limits: list[int], shape: tuple[int, int]
    ) -> Int[np.ndarray, "B T"] | None:
        if not any(prefixes):
            return None
        for prefix, limit in zip(prefixes, limits, strict=True):
            if len(prefix) >= limit:
                raise UserError(
                    f"the prefix has {len(prefix)} tokens, and the translation of this sentence may have {limit} with "
                    "its end (decoding.max_length_factor, decoding.max_length_extra)"
                )
        return rows(prefixes, shape)


@partial(jax.jit, static_argnames=("graphdefs", "settings"))
def search_batch(
    graphdefs: tuple[nnx.GraphDef[Transformer], ...],
    params: tuple[Params, ...],
    source_tokens: Int[Array, "B S"],
    limits: Int[Array, " B"],
    prefixes: Int[Array, "B T"] | None,
    numbers: UInt32[Array, " B"],
    seed: UInt32[Array, ""],
    settings: SearchSettings,
) -> Hypotheses:
    """The search of one batch, compiled once per shape and settings; PAD marks where a source ends."""
    models = tuple(nnx.merge(graphdef, each) for graphdef, each in zip(graphdefs, params, strict=True))
    sources = Sources(Tokens.one_per_row(source_tokens), limits, prefixes)
    if settings.sampling:
        found = sample(models, sources, settings, jax.random.key(seed), numbers)
    elif settings.beam_size == 1:
        found = greedy(models, sources, settings)
    else:
        found = beam_search(models, sources, settings)
    return replicate(found)


def search_settings(config: DecodingConfig, count: int, max_length: int) -> SearchSettings:
    """The settings with which ``count`` translations are searched or drawn."""
    ranking = Ranking(config.normalization, config.length_penalty, config.coverage_penalty)
    sampling = Sampling(config.temperature, config.top_k, config.top_p) if config.search == "sample" else None
    return SearchSettings(max_length, config.beam_size, count, ranking, sampling)


def numbers_of(sources: list[list[int]], size: int) -> UInt32[np.ndarray, " B"]:
    """What tells the draws of one sentence from those of another: its tokens alone, not its place in the input."""
    numbers = [zlib.crc32(np.array(source, np.int32).tobytes()) for source in sources]
    return np.array(numbers + [0] * (size - len(numbers)), np.uint32)


def rows(sequences: list[list[int]], shape: tuple[int, int]) -> Int[np.ndarray, "B T"]:
    """Tokens in rows of equal length, then PAD, and as many rows as are wanted."""
    filled = np.full(shape, PAD, np.int32)
    for row, sequence in zip(filled, sequences, strict=False):
        row[: len(sequence)] = sequence
    return filled


def hypotheses_of(found: Hypotheses) -> Iterator[list[Hypothesis]]:
    """Row by row, what is there, brought from the device."""
    for tokens, lengths, log_probs, scores, ended in zip(*(np.asarray(each).tolist() for each in found), strict=True):
        ends = [length - end for length, end in zip(lengths, ended, strict=True)]
        row = zip((each[:end] for each, end in zip(tokens, ends, strict=True)), log_probs, scores, ended, strict=True)
        yield [Hypothesis(*each) for each, length in zip(row, lengths, strict=True) if length]


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
