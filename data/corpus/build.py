"""Build one corpus from sources of pairs: read and filter the rows, and check the splits for overlap."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from common.cache import Arrays
from common.errors import UserError
from common.files import sha256
from data.config import DataConfig
from data.corpus.report import Dropped, Files, Overlap, SharedSentences, Sides, SourceAccount
from data.corpus.splits import Hashes, find_overlap, hash_sentences, hold_out, refuse_overlap, without_shared
from data.corpus.warnings import find_short_sets, find_warnings
from data.pairs import Pairs, Weights, as_tsv, concatenate
from data.sentences import move_to_disk
from data.sources.report import SourceReport
from data.sources.source import Source, swap_if_reversed

HELD_OUT, SIDES = ("valid", "test"), ("source", "target")
Training = list[tuple[Pairs, SourceAccount]]  # each source's pairs and the fate of its rows


@dataclass(frozen=True)
class Corpus:
    """The training pairs of all sources together, the held-out sets, and facts about them.

    ``warnings`` come from find_warnings; ``hashes`` are of the training sentences, by side.
    """

    training: Pairs
    valid: Pairs
    test: Pairs
    files: Files
    overlap: Overlap
    warnings: list[str]
    hashes: Sides[Hashes]

    @property
    def weights(self) -> Weights:
        """How often an epoch visits each training pair; None if it visits every pair once."""
        accounts = self.files.train
        if all(account.weight == 1 for account in accounts):
            return None
        weights = np.array([account.weight for account in accounts], np.float64)
        return np.repeat(weights, [account.pairs for account in accounts])

    def by_source(self) -> list[Pairs]:
        """The training pairs of each source."""
        ends = np.cumsum([account.pairs for account in self.files.train]).tolist()
        parts = [slice(*bounds) for bounds in zip([0, *ends], ends, strict=False)]
        return [Pairs(self.training.sources[part], self.training.targets[part]) for part in parts]

    def arrays(self) -> Arrays:
        """The sentences and hashes as arrays."""
        hashes = {f"{side}_hashes": vars(self.hashes)[side] for side in SIDES}
        return self.training.arrays("training") | self.valid.arrays("valid") | self.test.arrays("test") | hashes

    def facts(self) -> dict[str, Any]:
        """Everything but the arrays, as JSON values."""
        overlap = {splits: asdict(sides) for splits, sides in self.overlap.items()}
        return {"files": asdict(self.files), "overlap": overlap, "warnings": self.warnings}

    @classmethod
    def mapped(cls, arrays: Arrays, facts: dict[str, Any]) -> "Corpus":
        """Restore the corpus from ``arrays`` and ``facts``."""
        training, valid, test = (Pairs.mapped(split, arrays) for split in ("training", "valid", "test"))
        train, *others = (facts["files"][split] for split in ("train", *HELD_OUT))
        files = Files([SourceAccount(**account) for account in train], *(SourceReport(**each) for each in others))
        shared = facts["overlap"].items()
        overlap = {splits: Sides(*(SharedSentences(**sides[side]) for side in SIDES)) for splits, sides in shared}
        hashes = Sides(*(arrays[f"{side}_hashes"] for side in SIDES))
        return cls(training, valid, test, files, overlap, facts["warnings"], hashes)


def parse_sources(config: DataConfig) -> dict[str, list[Source]]:
    """The sources that the config names, by split; UserError if one cannot be found."""
    splits = {"train": config.train, "valid": [config.valid], "test": [config.test]}
    return {split: [Source.parse(config, name, split) for name in names if name] for split, names in splits.items()}


def build(config: DataConfig, sources: dict[str, list[Source]]) -> Corpus:
    """Read and filter every source, and check the splits for overlap.

    Held-out sets that the config does not name are taken out of the training pairs. UserError if a source cannot be
    read or has no pairs left, or if splits share sentences.
    """
    weights = config.weights or [1.0] * len(config.train)
    training = [load_training(config, *each) for each in zip(sources["train"], weights, strict=True)]
    held_out = {split: sources[split][0].load() for split in HELD_OUT if sources[split]}
    warnings = find_warnings(config, [*training, *held_out.values()])
    if config.drop_overlap:
        others = [pairs for pairs, _ in held_out.values()]
        training = replace_pairs(training, [without_shared(pairs, others) for pairs, _ in training], "overlapping")
    refuse_nothing_left(training)
    if unnamed := [split for split in HELD_OUT if split not in held_out]:
        left, taken, asked = take_out(config, [pairs for pairs, _ in training], len(unnamed))
        warnings += find_short_sets(dict(zip(unnamed, map(len, taken), strict=True)), asked)
        training = replace_pairs(training, left, "held_out")
        for split, pairs in zip(unnamed, taken, strict=True):
            held_out[split] = pairs, SourceReport("", sha256(as_file(config, pairs)), len(pairs))
        refuse_nothing_left(training)
    (valid, valid_report), (test, test_report) = held_out["valid"], held_out["test"]
    everything = concatenate([pairs for pairs, _ in training])
    overlap = find_overlap({"train": everything, "valid": valid, "test": test})
    refuse_overlap(overlap, config.allow_overlap)
    files = Files([account for _, account in training], valid_report, test_report)
    hashes = Sides(*(move_to_disk(hash_sentences(side)) for side in (everything.sources, everything.targets)))
    return Corpus(everything, valid, test, files, overlap, warnings, hashes)


def load_training(config: DataConfig, source: Source, weight: float) -> tuple[Pairs, SourceAccount]:
    """The filtered pairs of a training source, and their account."""
    loaded, report = source.load()
    pairs, dropped = filter_pairs(loaded, config.max_length_ratio)
    empty = report.empty + dropped.empty
    counts = {"weight": weight, "empty": empty, "mismatched": dropped.mismatched, "pairs": len(pairs)}
    return pairs, SourceAccount(**asdict(report) | counts)


def filter_pairs(pairs: Pairs, max_length_ratio: float) -> tuple[Pairs, Dropped]:
    """Drop and count training pairs with an empty side or badly mismatched lengths. Never applied to held-out pairs."""
    source, target = (np.fromiter(map(len, side), np.int64, len(pairs)) for side in (pairs.sources, pairs.targets))
    short, long = np.minimum(source, target), np.maximum(source, target)
    # Adding 5 allows short pairs to differ more: "Hi." / "¿Qué tal estás?".
    mismatched = (short > 0) & (long + 5 > max_length_ratio * (short + 5))
    dropped = Dropped(empty=int((short == 0).sum()), mismatched=int(mismatched.sum()))
    return pairs.select((short > 0) & ~mismatched), dropped


def replace_pairs(training: Training, left: Sequence[Pairs], reason: str) -> Training:
    """Replace the pairs of each source by those left; ``reason`` names the account's count of dropped pairs."""
    replaced = []
    for pairs, (_, account) in zip(left, training, strict=True):
        counts: dict[str, Any] = {reason: account.pairs - len(pairs), "pairs": len(pairs)}
        replaced.append((pairs, replace(account, **counts)))
    return replaced


def refuse_nothing_left(training: Training) -> None:
    """UserError if all pairs of a source were dropped or taken out."""
    for pairs, account in training:
        if len(pairs) == 0:
            reasons = list(asdict(account.dropped()).items())[:-1]  # over_long is counted later
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons)
            raise UserError(f"{account.file} has no training pairs left, out of {account.rows} rows: {counts}")


def take_out(config: DataConfig, sources: Sequence[Pairs], sets: int) -> tuple[list[Pairs], list[Pairs], int]:
    """Split the sources into the pairs that stay and ``sets`` held-out sets; also return the intended size of a set."""
    everything = concatenate(sources)
    size = min(config.held_out, max(1, len(everything) // 20))
    chosen = hold_out(everything, [size] * sets)
    if not all(chosen):
        why = ", which are too few" if len(everything) <= sets else " that share so many sentences"
        problem = f"no held-out set can be taken out of {len(everything)} training pairs{why}"
        raise UserError(f"{problem}; name a file in data.valid and data.test")
    stays = np.ones(len(everything), dtype=bool)
    stays[list(chain.from_iterable(chosen))] = False
    ends = np.cumsum([len(pairs) for pairs in sources])
    left = [pairs.select(part) for pairs, part in zip(sources, np.split(stays, ends[:-1]), strict=True)]
    return left, [everything.take(indices) for indices in chosen], size


def as_file(config: DataConfig, taken_out: Pairs) -> str:
    """The file content for a held-out set taken out of the training pairs, in the order of the config's columns."""
    return as_tsv(swap_if_reversed(config, taken_out))
