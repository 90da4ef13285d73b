"""``data.json``: where a run's sentence pairs come from, which rows were dropped, what splits share, and digests."""

import json
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar

from data.sources.report import SourceReport

DATA_FILE = "data.json"
SPLITS = ("train", "valid", "test")
Fact = TypeVar("Fact")


@dataclass(frozen=True)
class Sides(Generic[Fact]):
    """A fact about each side."""

    source: Fact
    target: Fact


@dataclass(frozen=True)
class TakenOutReport(SourceReport):
    """A held-out set taken out of the training pairs, which the run will write."""


@dataclass(frozen=True)
class Dropped:
    """How many rows are not trained on, by reason."""

    malformed: int = 0
    empty: int = 0
    mismatched: int = 0
    overlapping: int = 0
    held_out: int = 0
    over_long: int = 0


@dataclass(frozen=True, kw_only=True)
class SourceAccount(SourceReport):
    """A training source: its weight, a count for each reason to drop a row, and the pairs left."""

    weight: float
    mismatched: int
    overlapping: int = 0
    held_out: int = 0
    pairs: int

    def dropped(self, over_long: int = 0) -> Dropped:
        return Dropped(self.malformed, self.empty, self.mismatched, self.overlapping, self.held_out, over_long)


@dataclass(frozen=True)
class Files:
    """The sources of each split."""

    train: list[SourceAccount]
    valid: SourceReport
    test: SourceReport

    def dropped(self, over_long: int = 0) -> Dropped:
        """The sums over the training sources, and the count of pairs too long for a row."""
        totals = map(sum, zip(*(astuple(account.dropped()) for account in self.train), strict=True))
        return replace(Dropped(*totals), over_long=over_long)


@dataclass(frozen=True)
class SharedSentences:
    """How many distinct folded sentences two splits share on one side, and up to three of them."""

    shared: int
    examples: list[str]


Overlap = dict[str, Sides[SharedSentences]]  # by two splits, such as train/valid


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer's file and size."""

    sha256: str
    vocab_size: int


@dataclass(frozen=True)
class DataIdentity:
    """What shows whether a run's data changed: SHA-256s of tokenizer, batches (fingerprint) and files by split."""

    tokenizer: str
    fingerprint: str
    files: dict[str, list[str]]
    training_pairs: int


@dataclass(frozen=True)
class DataReport:
    """The content of ``data.json``; ``fill`` is the share of real tokens in the rows of the first window."""

    direction: str
    files: Files
    dropped: Dropped
    training_pairs: int
    overlap: Overlap
    tokenizer: Vocabulary
    row_lengths: Sides[int]
    fingerprint: str
    fill: Sides[float]

    def identity(self) -> DataIdentity:
        train = [account.sha256 for account in self.files.train]
        files = {"train": train, "valid": [self.files.valid.sha256], "test": [self.files.test.sha256]}
        return DataIdentity(self.tokenizer.sha256, self.fingerprint, files, self.training_pairs)

    def as_json(self) -> str:
        facts = asdict(self)
        files = facts["files"]
        for split, source in (("valid", self.files.valid), ("test", self.files.test)):
            files[split] = [files[split]]
            if isinstance(source, TakenOutReport):  # last, and with fewer keys: the format predates this class
                del files[split]
                files[split] = [{"file": source.file, "rows": source.rows, "sha256": source.sha256}]
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def load_identity(run_dir: Path, record: str = DATA_FILE) -> DataIdentity | None:
    """Read the identity from ``data.json``, or an earlier record; None if the file is missing or damaged."""
    try:
        facts = json.loads((run_dir / record).read_text(encoding="utf-8"))
        files = {split: [source["sha256"] for source in facts["files"][split]] for split in SPLITS}
        found = DataIdentity(facts["tokenizer"]["sha256"], facts["fingerprint"], files, facts["training_pairs"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    digests = [found.tokenizer, found.fingerprint, *chain.from_iterable(files.values())]
    return found if all(isinstance(digest, str) for digest in digests) else None
