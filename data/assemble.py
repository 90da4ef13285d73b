"""From the sources that a config names to leak-free splits, with an account of every row."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from common.errors import UserError
from data.config import DataConfig
from data.pairs import Pairs, concatenate
from data.sources.corpus import filter_pairs, held_out_path, load_source
from data.sources.text import SourceReport
from data.splits.holdout import hold_out, without
from data.splits.overlap import Audit, audit, refuse_overlap

Account = dict[str, Any]  # file, sha256, rows, weight, one count for each reason to drop a row, and the pairs left
REASONS = ("malformed", "empty", "mismatched", "overlapping", "held_out")


@dataclass(frozen=True)
class Corpus:
    """Training pairs by source, the held-out sets, the account of each, and how many sentences the splits share."""

    sources: list[Pairs]
    valid: Pairs
    test: Pairs
    accounts: dict[str, list[Account]]
    overlap: Audit

    def dropped(self) -> dict[str, int]:
        """The training rows that are not trained on, by reason."""
        return {reason: sum(account[reason] for account in self.accounts["train"]) for reason in REASONS}


def assemble(config: DataConfig, run_dir: Path) -> Corpus:
    """Read every source, filter and audit; nothing is written. UserError if the splits share sentences.

    A held-out set without a name is taken out of the training pairs; ``run_dir`` is where the run will keep it.
    """
    sources, accounts = load_training(config)
    named = {s: load_source(config, name, s) for s, name in (("valid", config.valid), ("test", config.test)) if name}
    if config.drop_overlap:
        held_out = [pairs for pairs, _ in named.values()]
        sources = [drop_overlapping(pairs, held_out, account) for pairs, account in zip(sources, accounts, strict=True)]
    unnamed = [split for split in ("valid", "test") if split not in named]
    sources, taken = take_out(config, sources, accounts, len(unnamed))
    refuse_nothing_left(sources, accounts)
    sets = {split: pairs for split, (pairs, _) in named.items()} | dict(zip(unnamed, taken, strict=True))
    overlap = audit({"train": concatenate(sources), **sets})
    refuse_overlap(overlap, config.allow_overlap)
    held_out_accounts = {split: [asdict(report)] for split, (_, report) in named.items()}
    for split in unnamed:
        held_out_accounts[split] = [{"file": str(held_out_path(run_dir, split)), "rows": len(sets[split])}]
    return Corpus(sources, sets["valid"], sets["test"], {"train": accounts} | held_out_accounts, overlap)


def load_training(config: DataConfig) -> tuple[list[Pairs], list[Account]]:
    """Every source of ``data.train``, filtered, and its account."""
    sources, accounts = [], []
    for name, weight in zip(config.train, config.weights or [1.0] * len(config.train), strict=True):
        loaded, report = load_source(config, name, "train")
        kept, dropped = filter_pairs(loaded, config.max_length_ratio)
        sources.append(kept)
        accounts.append(account(report, weight, dropped, len(kept)))
    return sources, accounts


def account(report: SourceReport, weight: float, dropped: dict[str, int], kept: int) -> Account:
    return asdict(report) | {"weight": weight} | dropped | {"overlapping": 0, "held_out": 0, "pairs": kept}


def drop_overlapping(pairs: Pairs, held_out: Sequence[Pairs], account: Account) -> Pairs:
    """The pairs that share no sentence with a held-out set."""
    kept = without(pairs, held_out)
    account |= {"overlapping": len(pairs) - len(kept), "pairs": len(kept)}
    return kept


def take_out(
    config: DataConfig, sources: list[Pairs], accounts: list[Account], sets: int
) -> tuple[list[Pairs], list[Pairs]]:
    """What is left of the sources, and as many held-out sets as asked for."""
    if not sets:
        return sources, []
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
    left, start = [], 0
    for pairs, record in zip(sources, accounts, strict=True):
        kept = pairs.keep(stays[start : start + len(pairs)])
        record |= {"held_out": len(pairs) - len(kept), "pairs": len(kept)}
        start += len(pairs)
        left.append(kept)
    return left, [everything.take(held) for held in chosen]


def refuse_nothing_left(sources: list[Pairs], accounts: list[Account]) -> None:
    for pairs, record in zip(sources, accounts, strict=True):
        if len(pairs) == 0:
            counts = ", ".join(f"{record[reason]} {reason}" for reason in REASONS)
            raise UserError(f"no training pair of {record['file']} is left of {record['rows']} rows: {counts}")


def weights_of(config: DataConfig, sources: list[Pairs]) -> Float[np.ndarray, " P"] | None:
    """How often an epoch has each pair of the concatenated sources; None if each comes once."""
    if all(weight == 1 for weight in config.weights):
        return None
    return np.repeat(np.array(config.weights, dtype=np.float64), [len(pairs) for pairs in sources])
