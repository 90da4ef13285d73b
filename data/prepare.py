"""From a config to everything that training needs of the corpus, and the record of it in the run directory."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.digests import sha256
from common.errors import UserError
from common.files import write_atomically
from data.assemble import Corpus, assemble, weights_of
from data.batches.stream import BatchStream
from data.config import DataConfig, TokenizerConfig
from data.pairs import Pairs, as_tsv, concatenate
from data.sources.corpus import held_out_path
from data.splits.overlap import save_hashes
from data.tokenizer import Tokenizer, has_checkpoints, train_or_load_tokenizer

DATA_FILE = "data.json"


@dataclass(frozen=True)
class Prepared:
    """The training batches, the validation pairs, the tokenizer, and what ``data.json`` says about them.

    ``changes`` are lines on what differs from the data of the run's checkpoints, all of it harmless or allowed.
    """

    stream: BatchStream
    valid: Pairs
    tokenizer: Tokenizer
    report: dict[str, Any]
    changes: list[str]
    held_out: dict[str, bytes]  # files of the sets that were taken out of the training pairs
    trained_on: Pairs  # with those that are too long for a row

    def save(self, run_dir: Path) -> None:
        """Write tokenizer, held-out sets, hashes of the sentences and, last, ``data.json``."""
        for split, content in self.held_out.items():
            write_atomically(held_out_path(run_dir, split), content)
        self.tokenizer.save(run_dir)
        save_hashes(run_dir, self.trained_on)
        write_atomically(run_dir / DATA_FILE, json.dumps(self.report, indent=2, ensure_ascii=False) + "\n")


def prepare(
    config: DataConfig, tokenizer_config: TokenizerConfig, seed: int, run_dir: Path, allow_changes: bool = False
) -> Prepared:
    """Load, filter, audit, tokenize and pack; nothing is written but the counts of packed rows.

    A run with checkpoints keeps its tokenizer, whose config must not have changed. UserError if its data are not what
    they were, unless these change the training from here on and ``allow_changes`` says that they may.
    """
    corpus = assemble(config, run_dir)
    training, weights = concatenate(corpus.sources), weights_of(config, corpus.sources)
    tokenizer = train_or_load_tokenizer(run_dir, training, tokenizer_config, keep=True)
    stream = BatchStream(training, tokenizer, config, seed, run_dir / "row_counts.json", weights)
    held_out = held_out_files(config, corpus)
    for split, content in held_out.items():
        corpus.accounts[split][0]["sha256"] = sha256(content)
    report = {
        "direction": f"{config.source}-{config.target}",
        "files": corpus.accounts,
        "dropped": corpus.dropped() | stream.report,
        "training_pairs": stream.pairs,
        "overlap": corpus.overlap,
        "tokenizer": {"sha256": sha256(tokenizer.model), "vocab_size": tokenizer.vocab_size},
        "row_lengths": dict(zip(("source", "target"), stream.row_lengths, strict=True)),
        "fingerprint": stream.fingerprint,
    }
    changes = changes_of_data(run_dir, report, allow_changes) if has_checkpoints(run_dir) else []
    report["fill"] = dict(zip(("source", "target"), stream.fill(), strict=True))
    return Prepared(stream, corpus.valid, tokenizer, report, changes, held_out, training)


def held_out_files(config: DataConfig, corpus: Corpus) -> dict[str, bytes]:
    """The sets that were taken out of the training pairs, as the run keeps them: with the columns of the corpus."""
    turned = config.source != config.columns[0]
    unnamed = {"valid": (config.valid, corpus.valid), "test": (config.test, corpus.test)}
    return {
        split: as_tsv(*((pairs.targets, pairs.sources) if turned else (pairs.sources, pairs.targets))).encode()
        for split, (name, pairs) in unnamed.items()
        if not name
    }


def changes_of_data(run_dir: Path, new: dict[str, Any], allow_changes: bool) -> list[str]:
    """What of a run's data differs, a line each: "what: old → new (kind)". UserError unless the run may go on so."""
    old = load_report(run_dir)
    if old is None:
        lost = f"{run_dir / DATA_FILE} is missing or damaged, so nothing tells whether the training data are the same"
        if not allow_changes:
            raise UserError(f"{lost}; bring it back, or continue all the same with allow_changes=true")
        return [lost]
    incompatible = [
        *differing("tokenizer", [old["tokenizer"]], [new["tokenizer"]]),
        *differing_files(old, new, "valid"),
    ]
    if incompatible:
        told = "; ".join(incompatible)
        raise UserError(f"the data of {run_dir} changed: {told} (incompatible): undo it, or set run_dir=NEW_FOLDER")
    harmless = [f"{line} (harmless)" for line in differing_files(old, new, "test")]
    if old["fingerprint"] == new["fingerprint"]:
        return harmless
    changes = [
        *differing_files(old, new, "train"),
        f"training batches: fingerprint {old['fingerprint'][:8]} → {new['fingerprint'][:8]}",
        f"training pairs: {old['training_pairs']} → {new['training_pairs']}",
    ]
    if not allow_changes:
        raise UserError(
            f"the training data of {run_dir} changed since its checkpoints: {'; '.join(changes)} (changes the "
            "training). Undo it, set run_dir=NEW_FOLDER, or go on with the new data: allow_changes=true"
        )
    return [*harmless, *(f"{line} (changes the training)" for line in changes)]


def load_report(run_dir: Path) -> dict[str, Any] | None:
    """What ``data.json`` says, or None where it is missing or damaged."""
    try:
        report = json.loads((run_dir / DATA_FILE).read_text(encoding="utf-8"))
        digests = [report["fingerprint"], report["tokenizer"]["sha256"]]
        files = [file["sha256"] for split in ("train", "valid", "test") for file in report["files"][split]]
        return report if all(isinstance(digest, str) for digest in [*digests, *files]) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def differing_files(old: dict[str, Any], new: dict[str, Any], split: str) -> list[str]:
    return differing(f"data.{split}", old["files"][split], new["files"][split])


def differing(what: str, old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    """A line if the SHA-256s of some files are not those that they were."""
    before, after = ([file["sha256"] for file in files] for files in (old, new))
    return [] if before == after else [f"{what}: SHA-256 {shortened(before)} → {shortened(after)}"]


def shortened(digests: list[str]) -> str:
    return ", ".join(digest[:8] for digest in digests)
