"""The corpus of a config and what is known of its text, from the cache where the same files have been read before."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from common.cache import Arrays, keep
from common.errors import UserError
from common.files import hash_files, sha256
from common.option import select
from data.batches.windows import Weights
from data.config import DataConfig
from data.corpus.build import Corpus, assemble
from data.corpus.report import Files, Overlap, SharedSentences, Sides, SourceAccount, TakenOutReport
from data.corpus.splits import Hashes
from data.corpus.summary import summarise
from data.corpus.word_counts import WordCounts
from data.pairs import Pairs
from data.sources.corpus import held_out_path
from data.sources.report import SourceReport
from data.sources.source import Source

LIBRARIES = ("numpy", "pyarrow", "sentencepiece")


@dataclass(frozen=True)
class KnownCorpus:
    """What ``assemble`` finds, but the test set and the training sources, and counts of the training sentences.

    ``key`` identifies all that it depends on; None: what a source's text is, is not known before it is read.
    """

    key: str | None
    training: Pairs
    weights: Weights
    valid: Pairs
    files: Files
    overlap: Overlap
    taken_out: dict[str, str]
    warnings: list[str]
    hashes: Sides[Hashes]
    words: Sides[WordCounts]


class FileChangedError(Exception):
    """A source was written while it was read: what was read is not what the key identifies."""


def load_corpus(config: DataConfig, run_dir: Path) -> KnownCorpus:
    """Read and check the corpus, as ``assemble`` does, unless that is kept of the same files; UserError as there."""
    key = corpus_key(config)

    def read() -> Arrays:
        corpus = describe(assemble(config, run_dir), key)
        if corpus_key(config) != key:
            raise FileChangedError
        return to_arrays(corpus)

    if key is not None:
        with suppress(FileChangedError):
            return from_arrays(keep(f"corpus-{key}", read), key, run_dir)
    return describe(assemble(config, run_dir), None)


def corpus_key(config: DataConfig) -> str | None:
    """SHA-256 of all that the corpus depends on; None if a source is a dataset of the hub, or cannot be found."""
    splits = {"train": config.train, "valid": [config.valid], "test": [config.test]}
    try:
        found = [Source.parse(config, name, split).files for split, names in splits.items() for name in names if name]
        paths = [path for files in found if files is not None for path in files]
        digests = hash_files(paths)
    except (UserError, OSError):
        return None  # reading it tells the same in its turn
    if None in found:
        return None
    return sha256(json.dumps([code(), select(config, "of_text"), [[str(path) for path in paths], digests]]))


@cache
def code() -> str:
    """What changes with this program and its libraries."""
    modules = sorted(Path(__file__).parent.rglob("*.py"))
    return " ".join([*hash_files(modules), sys.version, *map(version, LIBRARIES)])


def describe(corpus: Corpus, key: str | None) -> KnownCorpus:
    """Count the words of the training sentences, and hash these."""
    source_hashes, source_words = summarise(corpus.training.sources)
    target_hashes, target_words = summarise(corpus.training.targets)
    return KnownCorpus(
        key,
        corpus.training,
        corpus.weights,
        corpus.valid,
        corpus.files,
        corpus.overlap,
        corpus.taken_out,
        corpus.warnings,
        Sides(source_hashes, target_hashes),
        Sides(source_words, target_words),
    )


def to_arrays(corpus: KnownCorpus) -> Arrays:
    """The corpus as arrays; all but its sentences and numbers is JSON in one of them."""
    facts = {
        "files": asdict(corpus.files),
        "taken out": corpus.taken_out,
        "overlap": {splits: asdict(sides) for splits, sides in corpus.overlap.items()},
        "warnings": corpus.warnings,
    }
    arrays = {"facts": np.frombuffer(json.dumps(facts).encode(), np.uint8)}
    if corpus.weights is not None:
        arrays["weights"] = corpus.weights
    hashes, words = corpus.hashes, corpus.words
    for side, hashed, counted in (("source", hashes.source, words.source), ("target", hashes.target, words.target)):
        arrays |= {f"{side}_hashes": hashed, f"{side}_words": counted.hashes, f"{side}_word_counts": counted.counts}
    return arrays | corpus.training.arrays("training") | corpus.valid.arrays("valid")


def from_arrays(arrays: Arrays, key: str, run_dir: Path) -> KnownCorpus:
    """The corpus of ``to_arrays``, whose held-out sets the run in ``run_dir`` will write."""
    facts = json.loads(arrays["facts"].tobytes())
    taken_out, files = facts["taken out"], facts["files"]

    def held_out(split: str) -> SourceReport:
        if split in taken_out:
            return TakenOutReport(**files[split] | {"file": str(held_out_path(run_dir, split))})
        return SourceReport(**files[split])

    return KnownCorpus(
        key,
        Pairs.mapped("training", arrays),
        arrays.get("weights"),
        Pairs.mapped("valid", arrays),
        Files([SourceAccount(**account) for account in files["train"]], held_out("valid"), held_out("test")),
        {
            splits: Sides(*(SharedSentences(**sides[side]) for side in ("source", "target")))
            for splits, sides in facts["overlap"].items()
        },
        taken_out,
        facts["warnings"],
        Sides(arrays["source_hashes"], arrays["target_hashes"]),
        Sides(*(WordCounts(arrays[f"{side}_words"], arrays[f"{side}_word_counts"]) for side in ("source", "target"))),
    )
