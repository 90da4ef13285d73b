"""What was read of a source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceReport:
    """What was read: file or dataset, the SHA-256 of its bytes, and its rows.

    Of these, some were left out as malformed, and others as empty: without text on either side, or for training on one.
    A held-out set that was taken out of the training pairs has no ``file`` until a run is to write it.
    """

    file: str
    sha256: str
    rows: int
    malformed: int = 0
    empty: int = 0


def describe_unscored(report: SourceReport) -> str | None:
    """How many rows of a held-out set are in no score, and why; None if all are."""
    unscored = report.malformed + report.empty
    if not unscored:
        return None
    return f"{unscored} of {report.rows} rows are not scored: {report.malformed} malformed, {report.empty} empty"
