"""From a config to everything that training needs of the corpus, and its record in the run directory."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import sha256, write_atomically
from data.batches.stream import BatchStream
from data.batches.windows import Weights
from data.config import DataConfig, TokenizerConfig
from data.doubts import find_warnings
from data.pairs import Pairs, as_tsv, concatenate
from data.report import (
    DATA_FILE,
    DataIdentity,
    DataReport,
    Files,
    Overlap,
    Sides,
    SourceAccount,
    TakenOutReport,
    Vocabulary,
    load_identity,
)
from data.sources.corpus import filter_pairs, held_out_path, load_source, swap_if_reversed
from data.splits import find_overlap, hold_out, refuse_overlap, save_hashes, without_shared
from data.tokenizer import Tokenizer, has_checkpoints, train_or_load_tokenizer
from data.word_counts import save_word_counts


@dataclass(frozen=True)
class Prepared:
    """The training batches, the validation pairs, the tokenizer, and the report on them for ``data.json``.

    ``changes`` has a line for each harmless or allowed difference from the data of the run's checkpoints.
    """

    stream: BatchStream
    valid: Pairs
    tokenizer: Tokenizer
    report: DataReport
    changes: list[str]
    warnings: list[str]  # as in Corpus
    taken_out: dict[str, str]  # as in Corpus
    training: Pairs  # with the pairs that are too long for a row

    def save(self, run_dir: Path) -> None:
        """Write all that describes the data, ``data.json`` last."""
        self.stream.hold_row_counts(False)
        for split, content in self.taken_out.items():
            write_atomically(held_out_path(run_dir, split), content)
        self.tokenizer.save(run_dir)
        save_hashes(run_dir, self.training)
        save_word_counts(run_dir, self.training)
        write_atomically(run_dir / DATA_FILE, self.report.as_json())


def prepare(
    config: DataConfig,
    tokenizer_config: TokenizerConfig,
    seed: int,
    run_dir: Path,
    allow_changes: bool = False,
    records: Sequence[str] = (DATA_FILE,),
) -> Prepared:
    """Load, filter, check, tokenize and pack; write nothing.

    A run with checkpoints keeps its tokenizer. UserError if its data is not that of any of the ``records`` in
    ``run_dir``, unless the change from the last one affects only further training and ``allow_changes`` is true.
    """
    corpus = assemble(config, run_dir)
    tags = tag_languages(config)
    tokenizer = train_or_load_tokenizer(run_dir, corpus.training, tokenizer_config, languages=tags, keep_existing=True)
    stream = BatchStream(corpus.training, tokenizer, config, seed, run_dir / "row_counts.json", corpus.weights)
    stream.hold_row_counts(True)  # until ``save``: a run that is refused stays as it was
    report = DataReport(
        direction=", ".join(f"{direction.source}-{direction.target}" for direction in config.directions),
        files=corpus.files,
        dropped=corpus.files.dropped(stream.over_long),
        training_pairs=stream.pairs,
        overlap=corpus.overlap,
        tokenizer=Vocabulary(sha256(tokenizer.model), tokenizer.vocab_size),
        row_lengths=Sides(*stream.row_lengths),
        fingerprint=stream.fingerprint,
        fill=Sides(*stream.fill()),
    )
    changes = find_changes(run_dir, records, report.identity(), allow_changes) if has_checkpoints(run_dir) else []
    written = corpus.taken_out, corpus.training
    return Prepared(stream, corpus.valid, tokenizer, report, changes, corpus.warnings, *written)


def tag_languages(config: DataConfig) -> list[str]:
    """The languages that need a tag in the vocabulary."""
    return [direction.target for direction in config.directions] if len(config.directions) > 1 else []


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


def find_changes(run_dir: Path, records: Sequence[str], new: DataIdentity, allow_changes: bool) -> list[str]:
    """A line "what: old → new (kind)" for each change of a run's data. UserError unless the run may continue."""
    known = [load_identity(run_dir, record) for record in records]
    old = new if new in known else known[-1]
    if old is None:
        lost = f"{run_dir / records[-1]} is missing or damaged, so the training data cannot be compared with the run's"
        if not allow_changes:
            raise UserError(f"{lost}; bring it back, or continue all the same with allow_changes=true")
        return [lost]
    incompatible = [
        *compare("tokenizer", [old.tokenizer], [new.tokenizer]),
        *compare("data.valid", old.files["valid"], new.files["valid"]),
    ]
    if incompatible:
        lines = "; ".join(incompatible)
        raise UserError(f"the data of {run_dir} changed: {lines} (incompatible): undo it, or set run_dir=NEW_FOLDER")
    harmless = [f"{line} (harmless)" for line in compare("data.test", old.files["test"], new.files["test"])]
    if old.fingerprint == new.fingerprint:
        return harmless
    changes = [
        *compare("data.train", old.files["train"], new.files["train"]),
        f"training batches: fingerprint {old.fingerprint[:8]} → {new.fingerprint[:8]}",
        f"training pairs: {old.training_pairs} → {new.training_pairs}",
    ]
    if not allow_changes:
        raise UserError(
            f"the training data of {run_dir} changed since its checkpoints: {'; '.join(changes)} (changes the "
            "training). Undo it, set run_dir=NEW_FOLDER, or go on with the new data: allow_changes=true"
        )
    return [*harmless, *(f"{line} (changes the training)" for line in changes)]


def compare(what: str, old: list[str], new: list[str]) -> list[str]:
    """One line if the SHA-256s differ, else none."""
    before, after = (", ".join(digest[:8] for digest in digests) for digests in (old, new))
    return [] if old == new else [f"{what}: SHA-256 {before} → {after}"]
