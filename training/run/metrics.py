"""The metrics of a run: the lines of metrics.jsonl."""

import json
import math
from pathlib import Path
from typing import Any

from common.files import write_atomically
from training.run.layout import METRICS, REJECTED_METRICS

# Values that differ when a run is repeated.
MEASURED = ("time", "tokens_per_second", "target_tokens_per_second", "minutes", "minutes_left")


def rewind_metrics(path: Path, step: int, *, evaluated: bool = True) -> int:
    """Drop lines of later steps, this step's evaluation unless ``evaluated``, and a last line cut short by a crash.

    Other lines that are not metrics are moved to ``metrics.rejected.txt``; returns their number.
    """
    if not path.is_file():
        return 0
    *lines, last = path.read_bytes().split(b"\n")
    lines += [last] if parse_metrics(last) else []
    parsed = [(line, parse_metrics(line)) for line in lines]
    kept = [line for line, entry in parsed if entry and (entry["step"], entry["kind"] == "valid") <= (step, evaluated)]
    rejected = [line for line, entry in parsed if line and not entry]
    if rejected:
        write_atomically(path.with_name(REJECTED_METRICS), b"".join(line + b"\n" for line in rejected))
    write_atomically(path, b"".join(line + b"\n" for line in kept))
    return len(rejected)


def parse_metrics(line: bytes) -> dict[str, Any]:
    """The values of a line of metrics.jsonl, with its step and kind; empty if it is not one."""
    try:
        entry = json.loads(line)
        for key in entry.keys() - {"kind", "time"}:
            float(entry[key])
        return entry if type(entry["step"]) is int and "kind" in entry else {}
    except (AttributeError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return {}


def read_metrics(run_dir: Path, *, measured: bool = False) -> list[dict[str, Any]]:
    """The readable lines of metrics.jsonl; ``measured`` includes values that differ when a run is repeated."""
    path = run_dir / METRICS
    entries = filter(None, map(parse_metrics, path.read_bytes().splitlines() if path.is_file() else []))
    return [{key: value for key, value in entry.items() if measured or key not in MEASURED} for entry in entries]


def finite_or_text(value: float) -> float | str:
    """A number in a form that JSON allows: NaN and infinities become text."""
    return value if math.isfinite(value) else str(value)
