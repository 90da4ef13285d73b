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
from model.decoding.sampling import greedy, sample
from model.decoding.settings import Ranking, Sampling, SearchSettings
from model.sharding import replicate
from model.transformer import Params, Tokens, Transformer, build

BUCKETS = (8, 16, 24, 32, 48, 64, 96, 128)  # source tokens with EOS; longer ones go to powers of two

Sentences = list[list[int]]  # tokens, without BOS and EOS
OnProgress = Callable[[int], object] | None  # called with the number of pieces searched since its last call


class Hypothesis(NamedTuple):
    """A result of a search: tokens without EOS, and whether EOS came before the limit."""

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Translation:
    """A line's translation: its text, and the source and target tokens of each separately translated piece.

    A line has one piece; a line too long for the model has several, an empty one none. ``log_prob`` and ``score`` are
    sums over pieces.
    """

    text: str
    sources: Sentences
    targets: Sentences
    log_prob: float
    score: float
    ended: bool

    @property
    def length(self) -> int:
        """Target tokens, without EOS."""
        return sum(map(len, self.targets))


@dataclass(frozen=True)
class Translator:
    """One model or an ensemble, without parameters, with the tokenizer and the search settings.

    Parameters are an argument, one tree per model, so one Translator serves every evaluation of a run and compiles each
    bucket once. A sentence's bucket and length limit depend on that sentence alone, and batches of a bucket have one
    shape. Attention is computed by its definition: translations do not depend on the kernel or device of training.
    """

    models: tuple[ModelConfig, ...]
    tokenizer: Tokenizer
    decoding: DecodingConfig
    row_length: int  # the longest sentence in training, in tokens

    @cached_property
    def graphdefs(self) -> tuple[nnx.GraphDef[Transformer], ...]:
        """The models' structures; see ``model.transformer.build``."""
        return tuple(build(replace(model, kernel="definition"), self.tokenizer.vocab_size) for model in self.models)

    @property
    def positions(self) -> float:
        """The most tokens, EOS included, that either side may have: the models' learned positions, else infinity."""
        tables = [float(model.max_positions) for model in self.models if model.positions == "learned"]
        return min(tables, default=math.inf)

    @property
    def longest(self) -> int:
        """The most tokens, EOS included, of a source that is translated in one piece."""
        return int(min(self.decoding.max_source_tokens or self.row_length, self.positions))

    def limit(self, length: int) -> int:
        """The most tokens in the translation of a source of ``length`` tokens; both include EOS."""
        return int(min(length * self.decoding.max_length_factor + self.decoding.max_length_extra, self.positions))

    def translate(
        self, params: Sequence[Params], lines: list[str], *, prefix: str = "", on_progress: OnProgress = None
    ) -> list[Translation]:
        """Translate each line, by the search's best hypothesis or by minimum Bayes risk; see ``candidates``."""
        by_risk = self.decoding.mbr != "none"
        count = (self.decoding.candidates or self.decoding.beam_size) if by_risk else 1
        found = self.candidates(params, lines, count, prefix=prefix, on_progress=on_progress)
        return [self._least_risk(candidates) if by_risk else candidates[0] for candidates in found]

    def _least_risk(self, candidates: list[Translation]) -> Translation:
        """The candidate of least risk: samples weigh alike, those of a beam by their probabilities."""
        log_probs = [candidate.log_prob for candidate in candidates]
        weights = [1.0] * len(candidates) if self.decoding.search == "sample" else probabilities(log_probs)
        return candidates[choose([candidate.text for candidate in candidates], weights, self.decoding.mbr)]

    def candidates(
        self,
        params: Sequence[Params],
        lines: list[str],
        count: int,
        *,
        prefix: str = "",
        on_progress: OnProgress = None,
    ) -> list[list[Translation]]:
        """Up to ``count`` translations of each line, best first or in drawing order, all beginning with ``prefix``.

        An empty line has one empty translation. UserError for a prefix that leaves no room in a sentence's limit.
        """
        sources = [self.tokenizer.encode(self.pieces(line)) for line in lines]
        prefix_tokens = self.tokenizer.encode([normalise(prefix)])[0]
        prefixes = [[] if index else prefix_tokens for pieces in sources for index in range(len(pieces))]
        flat = list(chain.from_iterable(sources))
        found = iter(self.search(params, flat, count, prefixes=prefixes, on_progress=on_progress))
        return [self._join(pieces, list(islice(found, len(pieces))), count) for pieces in sources]

    def pieces(self, line: str) -> list[str]:
        """The line whole if it fits, else cut at sentence ends; an empty line has no pieces."""

        def count(texts: list[str]) -> list[int]:
            return [len(tokens) + 1 for tokens in self.tokenizer.encode(texts)]

        text = normalise(line)
        return cut(text, self.longest, count) if text else []

    def _join(self, sources: Sentences, found: list[list[Hypothesis]], count: int) -> list[Translation]:
        """Translations of a line from those of its pieces: the best combinations, or the draws side by side."""
        combinations: list[tuple[Hypothesis, ...]] = [()]
        if found and self.decoding.search == "sample":
            combinations = list(zip(*found, strict=True))
        else:
            for hypotheses in found:
                extended = [(*combination, hypothesis) for combination in combinations for hypothesis in hypotheses]
                combinations = sorted(extended, key=lambda chosen: -math.fsum(each.score for each in chosen))[:count]
        if not combinations:
            raise UserError("the search found no translation: the model's parameters are not finite")
        translations = []
        for chosen in combinations:
            targets = [hypothesis.tokens for hypothesis in chosen]
            log_prob = math.fsum(hypothesis.log_prob for hypothesis in chosen)
            score = math.fsum(hypothesis.score for hypothesis in chosen)
            ended = all(hypothesis.ended for hypothesis in chosen)
            translations.append(Translation(join(self.spell(targets)), sources, targets, log_prob, score, ended))
        return translations

    def spell(self, targets: Sentences) -> list[str]:
        """Tokens as normalised text: a model may spell line feeds with byte tokens."""
        return [normalise(text) for text in self.tokenizer.decode(targets)]

    def search(
        self,
        params: Sequence[Params],
        sources: Sentences,
        count: int,
        *,
        prefixes: Sentences | None = None,
        on_progress: OnProgress = None,
    ) -> list[list[Hypothesis]]:
        """Up to ``count`` hypotheses for the tokens of each source, without BOS and EOS; one for an empty source."""
        found: list[list[Hypothesis]] = [[Hypothesis([], 0.0, 0.0, True)] for _ in sources]
        prefixes = prefixes or [[] for _ in sources]
        lengths = [len(source) + 1 for source in sources]
        for bucket, indices in group_by_bucket(lengths, self.decoding.batch_sentences):
            chosen = [sources[index] for index in indices], [prefixes[index] for index in indices]
            for index, hypotheses in zip(indices, self._search(params, bucket, *chosen, count), strict=True):
                found[index] = hypotheses
            if on_progress:
                on_progress(len(indices))
        return found

    def _search(
        self, params: Sequence[Params], bucket: int, sources: Sentences, prefixes: Sentences, count: int
    ) -> list[list[Hypothesis]]:
        """Search one batch, filled up with empty rows."""
        size, settings = batch_size(bucket, self.decoding.batch_sentences), self.decoding
        limits = [self.limit(len(source) + 1) for source in sources]
        found: Hypotheses = search_batch(
            self.graphdefs,
            tuple(params),
            pad_rows([[*source, EOS] for source in sources], (size, bucket)),
            np.array(limits + [0] * (size - len(limits)), np.int32),
            self._prefix_rows(prefixes, limits, (size, self.limit(bucket))),
            checksums(sources, size),
            np.uint32(settings.seed),
            search_settings(settings, count, self.limit(bucket)),
        )
        return list(islice(hypotheses_of(found), len(sources)))

    def _prefix_rows(
        self, prefixes: Sentences, limits: list[int], shape: tuple[int, int]
    ) -> Int[np.ndarray, "B T"] | None:
        if not any(prefixes):
            return None
        for prefix, limit in zip(prefixes, limits, strict=True):
            if len(prefix) >= limit:
                raise UserError(
                    f"the prefix has {len(prefix)} tokens, but the translation of this sentence may have only {limit}, "
                    "EOS included (decoding.max_length_factor, decoding.max_length_extra)"
                )
        return pad_rows(prefixes, shape)


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
    """Search one batch, compiled once per shape and settings; a source ends with EOS, then PAD."""
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


def checksums(sources: Sentences, size: int) -> UInt32[np.ndarray, " B"]:
    """Numbers that make the random draws of a sentence depend on its tokens alone, not on its place in the input."""
    numbers = [zlib.crc32(np.array(source, np.int32).tobytes()) for source in sources]
    return np.array(numbers + [0] * (size - len(numbers)), np.uint32)


def pad_rows(sequences: Sentences, shape: tuple[int, int]) -> Int[np.ndarray, "B T"]:
    """Tokens in rows of equal length, filled up with PAD and with empty rows."""
    padded = np.full(shape, PAD, np.int32)
    for row, sequence in zip(padded, sequences, strict=False):
        row[: len(sequence)] = sequence
    return padded


def hypotheses_of(found: Hypotheses) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each row, fetched from the device; entries without a token are left out."""
    for row in zip(*(np.asarray(array).tolist() for array in found), strict=True):
        yield [
            Hypothesis(tokens[: length - ended], log_prob, score, ended)
            for tokens, length, log_prob, score, ended in zip(*row, strict=True)
            if length
        ]


def bucket_of(length: int) -> int:
    """The padded length of a source of ``length`` tokens."""
    return next((bucket for bucket in BUCKETS if length <= bucket), 1 << (length - 1).bit_length())


def batch_size(bucket: int, batch_sentences: int) -> int:
    """Sentences searched together; fewer of very long ones, so that a batch never needs many times the usual memory."""
    return max(1, batch_sentences * BUCKETS[-1] // max(bucket, BUCKETS[-1]))


def group_by_bucket(lengths: list[int], batch_sentences: int) -> Iterator[tuple[int, list[int]]]:
    """Batches of sentence indices, each with its bucket, shortest first.

    Lengths include EOS: a sentence of length 1 is empty and is in no batch.
    """
    order = sorted((index for index, length in enumerate(lengths) if length > 1), key=lengths.__getitem__)
    for bucket, group in groupby(order, key=lambda index: bucket_of(lengths[index])):
        indices, size = list(group), batch_size(bucket, batch_sentences)
        yield from ((bucket, indices[start : start + size]) for start in range(0, len(indices), size))
