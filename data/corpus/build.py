"""From a config to training pairs and held-out sets: sources read and filtered, splits checked for overlap."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import sha256
from data.batches.windows import Weights
from data.config import DataConfig
from data.corpus.filters import filter_pairs
from data.corpus.report import Files, Overlap, SourceAccount, TakenOutReport
from data.corpus.splits import find_overlap, hold_out, refuse_overlap, without_shared
from data.corpus.warnings import find_warnings
from data.pairs import Pairs, as_tsv, concatenate
from data.sources.corpus import held_out_path
from data.sources.source import load_source, swap_if_reversed


@dataclass(frozen=True)
class Corpus:
    """Training pairs, by source and all in one, the held-out sets, and what is known of them.

    ``weights`` says how often an epoch visits each training pair (None: once); ``taken_out`` has the content of the
    files of held-out sets taken out of the training pairs.
    """

    sources: list[Pairs]
    training: Pairs
    weights: Weights
    valid: Pairs
    test: Pairs
    files: Files
    overlap: Overlap
    taken_out: dict[str, str]
    warnings: list[str]  # as find_warnings gives them


def assemble(config: DataConfig, run_dir: Path) -> Corpus:
    """Read and filter every source and check the splits for overlap; write nothing.

    A held-out set that the config does not name is taken out of the training pairs; the run will write it to
    ``run_dir``. UserError if splits share sentences or a source has no pairs left.
    """
    sources, accounts = load_training(config)
    named = {s: load_source(config, name, s) for s, name in (("valid", config.valid), ("test", config.test)) if name}
    warnings = find_warnings(config, [*zip(sources, accounts, strict=True), *named.values()])
    if config.drop_overlap:
        sources = [without_shared(pairs, [held_out for held_out, _ in named.values()]) for pairs in sources]
        accounts = [count_removed(a, left, "overlapping") for a, left in zip(accounts, sources, strict=True)]
    refuse_nothing_left(accounts)
    unnamed = [split for split in ("valid", "test") if split not in named]
    taken_out = {}
    if unnamed:
        sources, taken = take_out(config, sources, len(unnamed))
        accounts = [count_removed(a, left, "held_out") for a, left in zip(accounts, sources, strict=True)]
        for split, pairs in zip(unnamed, taken, strict=True):
            taken_out[split] = as_tsv(swap_if_reversed(config, pairs))
            report = TakenOutReport(str(held_out_path(run_dir, split)), sha256(taken_out[split]), len(pairs))
            named[split] = pairs, report
    refuse_nothing_left(accounts)
    (valid, valid_report), (test, test_report) = named["valid"], named["test"]
    training, files = concatenate(sources), Files(accounts, valid_report, test_report)
    overlap = find_overlap({"train": training, "valid": valid, "test": test})
    refuse_overlap(overlap, config.allow_overlap)
    weights = pair_weights(config, sources)
    return Corpus(sources, training, weights, valid, test, files, overlap, taken_out, warnings)


def refuse_nothing_left(accounts: Sequence[SourceAccount]) -> None:
    """UserError if all pairs of a source were dropped or taken out."""
    for account in accounts:
        if account.pairs == 0:
            reasons = list(asdict(account.dropped()).items())[:-1]  # over_long is counted later
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons)
            raise UserError(f"no training pair of {account.file} is left of {account.rows} rows: {counts}")


def load_training(config: DataConfig) -> tuple[list[Pairs], list[SourceAccount]]:
    """Every source of ``data.train``, filtered, and its account."""
    sources, accounts = [], []
    for name, weight in zip(config.train, config.weights or [1.0] * len(config.train), strict=True):
        loaded, report = load_source(config, name, "train")
        pairs, dropped = filter_pairs(loaded, config.max_length_ratio)
        sources.append(pairs)
        empty = report.empty + dropped.empty
        counts = {"weight": weight, "empty": empty, "mismatched": dropped.mismatched, "pairs": len(pairs)}
        accounts.append(SourceAccount(**asdict(report) | counts))
    return sources, accounts


def count_removed(account: SourceAccount, left: Pairs, reason: str) -> SourceAccount:
    counts: dict[str, Any] = {reason: account.pairs - len(left), "pairs": len(left)}
    return replace(account, **counts)


def take_out(config: DataConfig, sources: Sequence[Pairs], sets: int) -> tuple[list[Pairs], list[Pairs]]:
    """Split the sources into the pairs that stay and ``sets`` held-out sets."""
    everything = concatenate(sources)
    size = min(config.held_out, max(1, len(everything) // 20))
    chosen = hold_out(everything, [size] * sets)
    if not all(chosen):
        why = ", which are too few" if len(everything) <= sets else " that share so many sentences"
        raise UserError(
            f"no held-out set can be taken out of {len(everything)} training pairs{why}; "
            "name a file in data.valid and data.test"
        )
    stays = np.ones(len(everything), dtype=bool)
    stays[list(chain.from_iterable(chosen))] = False
    ends = np.cumsum([len(pairs) for pairs in sources])
    left = [pairs.select(part) for pairs, part in zip(sources, np.split(stays, ends[:-1]), strict=True)]
    return left, [everything.take(indices) for indices in chosen]


def pair_weights(config: DataConfig, sources: list[Pairs]) -> Weights:
    """How often an epoch visits each pair of the concatenated sources; None if every pair comes once."""
    if all(weight == 1 for weight in config.weights):
        return None
    return np.repeat(np.array(config.weights, dtype=np.float64), [len(pairs) for pairs in sources])
