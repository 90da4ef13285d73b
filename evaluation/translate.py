"""Text → text: sentences are grouped by length into a few compiled shapes, searched, and put back in order."""

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from flax import nnx
from jax.sharding import Mesh
from jaxtyping import Array, Int

from common.errors import UserError, explain_lack_of_memory
from common.special_tokens import EOS, PAD
from data.capitals import in_sentence_case
from data.invisible import without_invisible
from data.long_lines import Usual, cut, has_fewer_sentences, split_line
from data.pairs import beginning_of, normalise
from data.tokens.tokenizer import Tokenizer
from evaluation.buckets import SearchBatch, batch_size, group_by_bucket
from evaluation.minimum_risk import choose
from evaluation.over_devices import mesh_of, shard_rows
from evaluation.search import search_batch, search_settings
from evaluation.side_by_side import side_by_side
from model.config import DecodingConfig, ModelConfig
from model.decoding.hypotheses import Hypotheses
from model.decoding.next_token import SpellingTable
from model.transformer import Params, Transformer, build

BATCHES = 8  # of short sentences per call: when some sentences are finished, others take their rows

Ensemble = Sequence[Params]  # one tree per model
TokenLists = Sequence[list[int]]  # tokens, without BOS and EOS
Opening = tuple[SpellingTable, list[int]] | None  # how tokens spell a prefix, and the initial state of each source
OnProgress = Callable[[int], object] | None  # called with the number of pieces searched since its last call


class Hypothesis(NamedTuple):
    """A result of a search: tokens without EOS, and whether EOS came before the limit."""

    tokens: list[int]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class Translation:
    """A line's translation. A line like those in training has one piece, other lines several, an empty line none."""

    text: str
    sources: TokenLists  # of the pieces
    targets: TokenLists
    log_prob: float  # like the score, a sum over pieces
    score: float
    ended: bool
    tokens: list[str]  # of all pieces, without EOS


@dataclass(frozen=True)
class Translator:
    """One model or an ensemble, without parameters, with the tokenizer and the search settings.

    Methods take the parameters as an argument, so one Translator serves every evaluation of a run and compiles each
    bucket once. A sentence's bucket and length limit depend only on that sentence, and all batches of a bucket have the
    same shape. Attention is computed by its definition: translations do not depend on the kernel or device of training.
    """

    models: tuple[ModelConfig, ...]
    tokenizer: Tokenizer
    decoding: DecodingConfig
    usual: Usual  # what training sources are like
    source: str = ""  # the source language: its rules decide where sentences end
    target: str = ""  # the target language: it selects the direction of a bidirectional model

    @cached_property
    def graphdefs(self) -> tuple[nnx.GraphDef[Transformer], ...]:
        return tuple(build(replace(model, kernel="definition"), self.tokenizer.vocab_size) for model in self.models)

    @property
    def positions(self) -> float:
        """The most tokens that either side may have, including EOS: the models' learned positions, or infinity."""
        tables = [float(model.max_positions) for model in self.models if model.positions == "learned"]
        return min(tables, default=math.inf)

    @cached_property
    def tag(self) -> list[int]:
        """The tokens to put before each source: the tag of the target language, or nothing."""
        return self.tokenizer.tag(self.target)

    @property
    def longest(self) -> int:
        """The most tokens, including EOS, in a source that is translated in one piece."""
        return int(min(self.decoding.max_source_tokens or self.usual.tokens, self.positions))

    def limit(self, length: int) -> int:
        """The most tokens in the translation of a source of ``length`` tokens, which learned positions may lower."""
        return int(min(self.decoding.limit(length), self.positions))

    def translate(
        self, params: Ensemble, lines: list[str], *, prefix: str = "", on_progress: OnProgress = None
    ) -> list[Translation]:
        """Translate each line, taking the best hypothesis or the one of minimum Bayes risk; see ``candidates``."""
        by_risk = self.decoding.mbr != "none"
        count = (self.decoding.candidates or self.decoding.beam_size) if by_risk else 1
        found = self.candidates(params, lines, count, prefix=prefix, on_progress=on_progress)
        return [self._least_risk(candidates) if by_risk else candidates[0] for candidates in found]

    def _least_risk(self, candidates: list[Translation]) -> Translation:
        """The candidate of least risk: samples have equal weights, beam hypotheses are weighted by probability."""
        likeliest = max(candidate.log_prob for candidate in candidates)
        draws = self.decoding.draws
        weights = [1.0 if draws else math.exp(candidate.log_prob - likeliest) for candidate in candidates]
        return candidates[choose([candidate.text for candidate in candidates], weights, self.decoding.mbr)]

    def candidates(
        self, params: Ensemble, lines: list[str], count: int, *, prefix: str = "", on_progress: OnProgress = None
    ) -> list[list[Translation]]:
        """Up to ``count`` translations of each line, all starting with ``prefix``; best first, or samples as drawn.

        If the first translation of a line has lost a sentence, the line is translated again, sentence by sentence. An
        empty line has one empty translation. UserError if ``find_problems`` finds a problem.
        """
        for problem in filter(None, self.find_problems(lines, prefix)):
            raise UserError(problem)
        found = self._candidates(params, lines, count, prefix, on_progress)
        apart = replace(self, usual=replace(self.usual, sentences=1))
        lost = [index for index, line in enumerate(lines) if self._has_lost(line, found[index][0])]
        lost = [index for index in lost if not any(apart.find_problems([lines[index]], prefix))]
        again = apart._candidates(params, [lines[index] for index in lost], count, prefix, on_progress)
        for index, each in zip(lost, again, strict=True):
            found[index] = each
        return found

    def _has_lost(self, line: str, found: Translation) -> bool:
        is_whole = len(found.sources) == 1 and not self.decoding.max_source_tokens
        return is_whole and has_fewer_sentences(found.text, self.target, read(line), self.source)

    def _candidates(
        self, params: Ensemble, lines: list[str], count: int, prefix: str, on_progress: OnProgress
    ) -> list[list[Translation]]:
        sources = [self.encode_sources(self.pieces(line)) for line in lines]
        opening, starts = None, list[int]()
        if normalise(prefix):
            spelling, strict = self.tokenizer.spelling(beginning_of(prefix))
            opening = spelling, starts
            for pieces in sources:
                starts += [0 if strict < self.limit(len(piece) + 1) else strict for piece in pieces[:1]]
                starts += [len(spelling) - 1 for _ in pieces[1:]]
        found = iter(self.search(params, list(chain(*sources)), count, opening, on_progress))
        return [self._join(pieces, list(islice(found, len(pieces))), count) for pieces in sources]

    def find_problems(self, lines: list[str], prefix: str) -> list[str]:
        """For each line, why it cannot be translated, or "": the prefix may fill the line's length limit."""
        length = len(self.tokenizer.encode([beginning_of(prefix)])[0])
        return [self._find_problem(line, length) for line in lines] if length else [""] * len(lines)

    def _find_problem(self, line: str, prefix_length: int) -> str:
        lengths = self._count_tokens(self.pieces(line))
        if not lengths or prefix_length < (limit := self.limit(lengths[0])):
            return ""
        most = f"{limit}, including EOS (decoding.max_length_factor, decoding.max_length_extra)"
        return f"the prefix has {prefix_length} tokens, but the translation of this sentence may have only {most}"

    def pieces(self, line: str) -> list[str]:
        """The line as one piece if training had lines like it, else its parts; an empty line has no pieces.

        With ``decoding.max_source_tokens``, each part has as many sentences as the limit allows.
        """
        text = read(line)
        if not text:
            return []
        if self.decoding.max_source_tokens:
            return cut(text, self.longest, self._count_tokens)
        return split_line(text, self.source, replace(self.usual, tokens=self.longest), self._count_tokens)

    def _count_tokens(self, texts: list[str]) -> list[int]:
        return [len(tokens) + 1 for tokens in self.encode_sources(texts)]

    def encode_sources(self, texts: list[str]) -> TokenLists:
        """The tokens of normalised texts, after the tag of the target language if the model has tags."""
        return [[*self.tag, *tokens] for tokens in self.tokenizer.encode(texts)]

    def _join(self, sources: TokenLists, found: list[list[Hypothesis]], count: int) -> list[Translation]:
        """Join the translations of a line's pieces: the best combinations, or the samples in the order drawn."""
        if not sources:
            return [Translation("", [], [], 0.0, 0.0, True, [])]
        combinations: list[tuple[Hypothesis, ...]] = [()]
        if self.decoding.draws:
            combinations = list(zip(*found, strict=True))
        else:
            for hypotheses in found:
                extended = [(*combination, hypothesis) for combination in combinations for hypothesis in hypotheses]
                combinations = sorted(extended, key=lambda chosen: -math.fsum(each.score for each in chosen))[:count]
        if not combinations:
            raise UserError("the search found no translation: the model's parameters are not finite")
        translations = []
        for chosen in combinations:
            targets, log_probs, scores, ended = map(list, zip(*chosen, strict=True))
            text, sums = " ".join(filter(None, self.spell(targets))), (math.fsum(log_probs), math.fsum(scores))
            tokens = self.tokenizer.pieces(list(chain(*targets)))
            translations.append(Translation(text, sources, targets, *sums, all(ended), tokens))
        return translations

    def spell(self, targets: list[list[int]]) -> list[str]:
        """Decode to normalised text: a model may produce line feeds with byte tokens."""
        return [normalise(text) for text in self.tokenizer.decode(targets)]

    def search(
        self, params: Ensemble, sources: TokenLists, count: int, opening: Opening = None, on_progress: OnProgress = None
    ) -> list[list[Hypothesis]]:
        """Up to ``count`` hypotheses for the tokens of each source, without BOS and EOS; one for an empty source."""
        mesh, found = mesh_of(params), dict[int, list[Hypothesis]]()
        lengths = [len(source) + 1 for source in sources]
        groups = list(group_by_bucket(lengths, self.decoding.batch_sentences, mesh.size if mesh else 1, BATCHES))
        search = partial(self._search, params, mesh, sources, opening, count)
        most = "decoding.candidates" if self.decoding.draws else "decoding.beam_size"
        with explain_lack_of_memory(f"make decoding.batch_sentences or {most} smaller"):
            for (_, indices), hypotheses in zip(groups, (map if mesh else side_by_side)(search, groups), strict=True):
                found.update(zip(indices, hypotheses, strict=False))
                if on_progress:
                    on_progress(len(indices))
        return [found.get(index, [Hypothesis([], 0.0, 0.0, True)]) for index in range(len(sources))]

    def _search(
        self, params: Ensemble, mesh: Mesh | None, every: TokenLists, opening: Opening, count: int, batch: SearchBatch
    ) -> list[list[Hypothesis]]:
        """Search one batch of the sources, padded with empty rows."""
        (rows, bucket), indices = batch
        sources, spelling = [every[index] for index in indices], opening and opening[0]

        def filled(values: list[int], dtype: npt.DTypeLike) -> Any:
            return shard_rows(np.pad(np.array(values, dtype), (0, rows - len(values))), mesh)

        tokens = shard_rows(pad_rows([[*source, EOS] for source in sources], (rows, bucket)), mesh)
        limits = filled([self.limit(len(source) + 1) for source in sources], np.int32)
        starts = filled([opening[1][index] for index in indices], np.int32) if opening else None
        # The random draws for a sentence depend only on its tokens, not on its place in the input.
        numbers = filled([zlib.crc32(np.array(source, np.int32).tobytes()) for source in sources], np.uint32)
        size = batch_size(bucket, self.decoding.batch_sentences)
        settings = search_settings(self.decoding, self.limit(bucket), count, size)
        models, seed = (self.graphdefs, tuple(params)), np.uint32(self.decoding.seed)
        found: Hypotheses = search_batch(*models, tokens, limits, starts, numbers, seed, settings, mesh, spelling)
        return list(hypotheses_of(found))


def read(line: str) -> str:
    """A line as models read it: normalised, not in all capitals, and without meaningless invisible characters."""
    return in_sentence_case(normalise(without_invisible(line)))


def pad_rows(sequences: TokenLists, shape: tuple[int, int]) -> Int[np.ndarray, "B T"]:
    """Put tokens in an array of this shape, padded with PAD and with empty rows."""
    padded = np.full(shape, PAD, np.int32)
    for row, sequence in zip(padded, sequences, strict=False):
        row[: len(sequence)] = sequence
    return padded


def hypotheses_of(found: Iterable[Array]) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each row, fetched from the device; entries without a token are left out."""
    for row in zip(*(np.asarray(array).tolist() for array in found), strict=True):
        yield [
            Hypothesis(tokens[: length - ended], log_prob, score, ended)
            for tokens, length, log_prob, score, ended in zip(*row, strict=True)
            if length
        ]
