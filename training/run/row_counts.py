"""The number of packed rows in each window, stored so that finding a late step does not repack earlier windows."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import sentencepiece

from common.errors import UserError
from common.files import read_json, write_atomically
from data.batches.encoded import ALGORITHM
from training.run.layout import ROW_COUNTS

Counts = dict[tuple[int, int], int]  # rows by (epoch, window)


class RowCounts(Counts):
    """Row counts; whenever one is set, all are written to the run's file."""

    def __init__(self, run_dir: Path, fingerprint: str, known: Counts) -> None:
        super().__init__(known)
        self._path, self._fingerprint = run_dir / ROW_COUNTS, fingerprint
        self._write()

    def __setitem__(self, window: tuple[int, int], rows: int) -> None:
        super().__setitem__(window, rows)
        if self._path.parent.exists():  # if its disk is gone, the run directory must not be created again
            self._write()

    def _write(self) -> None:
        rows = [[*window, count] for window, count in sorted(self.items())]
        content = {"check": checksum(self._fingerprint, rows), "rows": rows}
        with contextlib.suppress(UserError):  # a read-only folder does not stop a run
            write_atomically(self._path, json.dumps(content) + "\n")


def load_row_counts(run_dir: Path, fingerprint: str) -> Counts:
    """The stored counts; empty if there is no file or its checksum does not match these batches."""
    try:
        saved = read_json(run_dir / ROW_COUNTS)
        if saved["check"] == checksum(fingerprint, saved["rows"]):
            return {(epoch, window): rows for epoch, window, rows in saved["rows"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # windows are packed again
    return {}


def checksum(fingerprint: str, rows: Any) -> str:
    key = f"{fingerprint} {ALGORITHM} {sentencepiece.__version__} {json.dumps(rows)}"
    return hashlib.sha256(key.encode()).hexdigest()
