"""From the sources that a config names to leak-free splits, with an account of every row."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from jaxtyping import Float

from common.errors import UserError
from data.config import DataConfig
from data.pairs import Pairs, concatenate
from data.report import Files, Overlap, SourceAccount, TakenOutReport
from data.sources.corpus import filter_pairs, held_out_path, load_source
from data.splits.holdout import hold_out, without_shared
from data.splits.overlap import find_overlap, refuse_overlap


@dataclass(frozen=True)
class Corpus:
    """Training pairs by source, the held-out sets, an account of every file, and the sentences that splits share."""

    sources: list[Pairs]
    valid: Pairs
    test: Pairs
    files: Files
    overlap: Overlap


def assemble(config: DataConfig, run_dir: Path) -> Corpus:
    """Read and filter every source and check the splits for overlap; write nothing.

    A held-out set that the config does not name is taken out of the training pairs; the run will write it to
    ``run_dir``. UserError if splits share sentences or a source has no pairs left.
    """
    sources, accounts = load_training(config)
    named = {s: load_source(config, name, s) for s, name in (("valid", config.valid), ("test", config.test)) if name}
    if config.drop_overlap:
        sources = [without_shared(pairs, [held_out for held_out, _ in named.values()]) for pairs in sources]
        accounts = [
            replace(account, overlapping=account.pairs - len(left), pairs=len(left))
            for account, left in zip(accounts, sources, strict=True)
        ]
    unnamed = [split for split in ("valid", "test") if split not in named]
    if unnamed:
        sources, taken = take_out(config, sources, len(unnamed))
        accounts = [
            replace(account, held_out=account.pairs - len(left), pairs=len(left))
            for account, left in zip(accounts, sources, strict=True)
        ]
        for split, pairs in zip(unnamed, taken, strict=True):
            named[split] = pairs, TakenOutReport(str(held_out_path(run_dir, split)), "", len(pairs))
    check_pairs_left(accounts)
    (valid, valid_report), (test, test_report) = named["valid"], named["test"]
    overlap = find_overlap({"train": concatenate(sources), "valid": valid, "test": test})
    refuse_overlap(overlap, config.allow_overlap)
    return Corpus(sources, valid, test, Files(accounts, valid_report, test_report), overlap)


def load_training(config: DataConfig) -> tuple[list[Pairs], list[SourceAccount]]:
    """Every source of ``data.train``, filtered, and its account."""
    sources, accounts = [], []
    for name, weight in zip(config.train, config.weights or [1.0] * len(config.train), strict=True):
        loaded, report = load_source(config, name, "train")
        pairs, dropped = filter_pairs(loaded, config.max_length_ratio)
        sources.append(pairs)
        counts = {"weight": weight, "empty": dropped.empty, "mismatched": dropped.mismatched, "pairs": len(pairs)}
        accounts.append(SourceAccount(**asdict(report) | counts))
    return sources, accounts


def take_out(config: DataConfig, sources: Sequence[Pairs], sets: int) -> tuple[list[Pairs], list[Pairs]]:
    """Split the sources into the pairs that stay and ``sets`` held-out sets."""
    everything = concatenate(sources)
    size = min(config.held_out, max(1, len(everything) // 20))
    chosen = hold_out(everything, [size] * sets)
    if not all(chosen):
        raise UserError(
            f"no held-out set can be taken out of {len(everything)} training pairs that share so many sentences; "
            "name a file in data.valid and data.test"
        )
    stays = np.ones(len(everything), dtype=bool)
    stays[list(chain.from_iterable(chosen))] = False
    ends = np.cumsum([len(pairs) for pairs in sources])
    left = [pairs.select(part) for pairs, part in zip(sources, np.split(stays, ends[:-1]), strict=True)]
    return left, [everything.take(indices) for indices in chosen]


def check_pairs_left(accounts: list[SourceAccount]) -> None:
    for account in accounts:
        if account.pairs == 0:
            reasons = list(asdict(account.dropped()).items())[:-1]  # over_long is counted later
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons)
            raise UserError(f"no training pair of {account.file} is left of {account.rows} rows: {counts}")


def pair_weights(config: DataConfig, sources: list[Pairs]) -> Float[np.ndarray, " P"] | None:
    """How often an epoch visits each pair of the concatenated sources; None if every pair comes once."""
    if all(weight == 1 for weight in config.weights):
        return None
    return np.repeat(np.array(config.weights, dtype=np.float64), [len(pairs) for pairs in sources])
