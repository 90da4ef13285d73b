"""``data.json``: where a run's sentence pairs come from, which rows were dropped, what splits share, and digests."""

import json
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Generic, TypeVar

from common.files import with_check
from data.batches.stream import Start
from data.long_lines import Usual
from data.sources.report import SourceReport

SPLITS = ("train", "valid", "test")
Fact = TypeVar("Fact")


@dataclass(frozen=True)
class Sides(Generic[Fact]):
    """A fact about each of the two sides."""

    source: Fact
    target: Fact


@dataclass(frozen=True)
class Dropped:
    """The number of rows left out of training, by reason."""

    malformed: int = 0
    empty: int = 0
    mismatched: int = 0
    overlapping: int = 0
    held_out: int = 0
    over_long: int = 0

    def __str__(self) -> str:
        """The counts above 0, each with its reason."""
        return ", ".join(f"{count:,} {reason}" for reason, count in asdict(self).items() if count) or "none"


@dataclass(frozen=True, kw_only=True)
class SourceAccount(SourceReport):
    """A training source: its weight, a count for each reason to drop a row, and the pairs left."""

    weight: float
    mismatched: int
    overlapping: int = 0
    held_out: int = 0
    pairs: int

    def dropped(self) -> Dropped:
        return Dropped(self.malformed, self.empty, self.mismatched, self.overlapping, self.held_out)


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
    """How many distinct folded sentences two splits share on one side, and up to three examples."""

    shared: int
    examples: list[str]


Overlap = dict[str, Sides[SharedSentences]]  # by pair of splits, such as train/valid


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer's file and size."""

    sha256: str
    vocab_size: int


@dataclass(frozen=True)
class DataReport:
    """The content of ``data.json``; ``fill`` is the share of real tokens in the rows of the first window.

    ``usual_source`` describes the lengths of the training sources, which decide what is translated in one piece;
    ``start`` is where the batches of this corpus and config start in the run.
    """

    direction: str
    files: Files
    dropped: Dropped
    training_pairs: int
    overlap: Overlap
    tokenizer: Vocabulary
    row_lengths: Sides[int]
    fingerprint: str
    fill: Sides[float]
    usual_source: Usual
    start: Start = field(default_factory=Start)

    def as_json(self) -> str:
        facts = asdict(self)
        facts["files"] |= {split: [facts["files"][split]] for split in ("valid", "test")}
        return json.dumps(with_check(facts), indent=2, ensure_ascii=False) + "\n"
