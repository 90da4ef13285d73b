"""The report on reading a source."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceReport:
    """What was read: the file or dataset, the SHA-256 of its bytes, and the number of its rows.

    Malformed and empty rows were left out: rows without text on both sides or, for training, on one.
    A held-out set that was taken out of the training pairs has no ``file`` until a run writes it.
    """

    file: str
    sha256: str
    rows: int
    malformed: int = 0
    empty: int = 0


def describe_unscored(report: SourceReport) -> str | None:
    """How many rows of a held-out set are not scored, and why; None if all are scored."""
    unscored = report.malformed + report.empty
    if not unscored:
        return None
    return f"{unscored} of {report.rows} rows are not scored: {report.malformed} malformed, {report.empty} empty"
