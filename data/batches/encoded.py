"""The training pairs as tokens: the pairs that fit into a row, in every trained direction.

P sentence pair · S source position · T target position.
"""

import hashlib
import json
from dataclasses import astuple, dataclass

import numpy as np
from jaxtyping import Int32

from common.cache import Arrays
from common.errors import UserError
from data.batches.packing import Capacity, row_lengths
from data.config import DataConfig
from data.long_lines import Usual, count_usual_sentences
from data.pairs import Pairs, Weights, concatenate
from data.sentences import in_blocks, move_to_disk
from data.tokens.subword_sampling import Segmentations
from data.tokens.table import TokenTable, fits
from data.tokens.tokenizer import Tokenizer, encode

ALGORITHM = 1  # increase it when the same inputs give different batches
MAX_ROWS = 16  # a line that would fill more rows is not a sentence

Tags = Int32[np.ndarray, " P"] | None  # the first token of each source; None: sources start with their text


@dataclass(frozen=True)
class EncodedPairs:
    """Pairs that fit into a row of ``row_lengths`` (S, T), their most probable tokens, and weights (None: all 1).

    With ``data.direction=both``, each pair of the corpus appears in both directions, and ``tags`` has the first token
    of each source (None: the vocabulary has no tags). ``over_long`` counts the pairs too long for a row. ``usual``
    describes the lengths of the sources.
    """

    texts: Pairs
    sources: TokenTable
    targets: TokenTable
    weights: Weights
    tags: Tags
    row_lengths: Capacity
    over_long: int
    usual: Usual

    def __len__(self) -> int:
        return len(self.texts)

    def arrays(self, corpus: Pairs) -> Arrays:
        """The pairs as arrays; texts are included only if they differ from the corpus."""
        optional = {"fitting_weights": self.weights, "tags": self.tags}
        arrays = {name: array for name, array in optional.items() if array is not None}
        for side, table in (("source", self.sources), ("target", self.targets)):
            arrays |= {f"{side}_{name}": array for name, array in table._asdict().items()}
        capacity, usual = np.array([*self.row_lengths, self.over_long]), np.array(astuple(self.usual))
        arrays |= {"capacity": capacity, "usual": usual}
        return arrays if self.texts is corpus else arrays | self.texts.arrays("fitting")

    @classmethod
    def mapped(cls, arrays: Arrays, corpus: Pairs) -> "EncodedPairs":
        """The pairs stored in ``arrays``."""
        texts = Pairs.mapped("fitting", arrays) if "fitting_source_text" in arrays else corpus
        sides = ([arrays[f"{side}_{name}"] for name in TokenTable._fields] for side in ("source", "target"))
        sources, targets = (TokenTable(*side) for side in sides)
        weights, tags = arrays.get("fitting_weights"), arrays.get("tags")
        source, target, over_long = arrays["capacity"].tolist()
        usual = Usual(*arrays["usual"].tolist())
        return cls(texts, sources, targets, weights, tags, (source, target), over_long, usual)


def encode_pairs(corpus: Pairs, tokenizer: Tokenizer, config: DataConfig, weights: Weights = None) -> EncodedPairs:
    """Encode the pairs, choose (S, T), and drop pairs that are too long; UserError if none are left."""
    pairs, tags = in_all_directions(corpus, tokenizer, config)
    weights = None if weights is None else np.tile(weights, len(config.directions))
    sources, targets = encode(tokenizer, pairs.sources, tags), encode(tokenizer, pairs.targets)
    # A line of a million letters, which will be dropped, must not affect the row lengths.
    usual = np.flatnonzero(np.maximum(sources.length, targets.length) <= MAX_ROWS * config.row_length)
    capacity = row_lengths(sources.length[usual], targets.length[usual], config.row_length)
    if config.subword_sampling > 0:
        # Random subwords lengthen one language more: take the ratio (S, T) from one draw for about 20,000 pairs.
        some = pairs.take(usual[:: 1 + len(usual) // 20_000].tolist())
        sides = (Segmentations(tokenizer, side) for side in (some.sources, some.targets))
        source, target = (each.draw(np.arange(len(some)), config.subword_sampling, seed=0).length for each in sides)
        capacity = row_lengths(source + (tags is not None), target, config.row_length)
    is_short = fits(sources, targets, capacity)
    if not is_short.any():
        raise UserError(f"no training pair fits a row of data.row_length={config.row_length} tokens; raise it")
    sources, targets = (
        TokenTable(table.flat, move_to_disk(table.start[is_short]), move_to_disk(table.length[is_short]))
        for table in (sources, targets)
    )
    weights, tags = (None if each is None else each[is_short] for each in (weights, tags))
    over_long = len(pairs) - int(is_short.sum())
    languages = np.repeat([direction.source for direction in config.directions], len(corpus))[is_short]
    pairs = pairs.select(is_short)
    like = Usual(count_usual_sentences(pairs.sources, languages), int(sources.length.max()))
    return EncodedPairs(pairs, sources, targets, weights, tags, capacity, over_long, like)


def in_all_directions(pairs: Pairs, tokenizer: Tokenizer, config: DataConfig) -> tuple[Pairs, Tags]:
    """The pairs in every trained direction, one direction after the other, and the tags of their sources.

    A single direction has tags if the vocabulary has them, as the one from ``training.init_from`` may.
    """
    tags = [tokenizer.tag(direction.target) for direction in config.directions]
    repeated = np.repeat(np.concatenate(tags).astype(np.int32), len(pairs)) if tags[0] else None
    return pairs if len(tags) == 1 else concatenate([pairs, pairs.reversed()]), repeated


def fingerprint(pairs: EncodedPairs, tokenizer: Tokenizer, config: DataConfig, seed: int) -> str:
    """The SHA-256 of everything that the batches depend on."""
    settings = [ALGORITHM, seed, config.row_length, config.batch_rows, config.window, config.subword_sampling]
    settings += [config.noise, 1] if config.noise else []  # added later: old fingerprints must not change
    digest = hashlib.sha256(json.dumps(settings).encode() + tokenizer.model)
    for block in in_blocks(zip(pairs.texts.sources, pairs.texts.targets, strict=True)):
        digest.update("".join(f"\n{source}\t{target}" for source, target in block).encode())
    for array in (pairs.weights, pairs.tags):
        if array is not None:
            digest.update(array.tobytes())
    return digest.hexdigest()
