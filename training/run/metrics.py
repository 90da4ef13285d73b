"""What a run shows of itself: a progress bar or plain lines, log.txt, metrics.jsonl and TensorBoard events."""

import contextlib
import json
import math
import sys
import time
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import scalar
from tqdm import tqdm

from common.files import append_line, told_as_user_error, write_atomically

REJECTED = "metrics.rejected.txt"
MEASURED = ("tokens_per_second", "target_tokens_per_second", "minutes", "minutes_left")  # another time, another value


class Monitor:
    """Progress of one run in its directory, continued after ``step`` when the run is.

    Lines of ``metrics.jsonl`` after ``step`` are dropped first, since those steps will be taken, and told, again; so is
    the evaluation of ``step`` itself unless it is ``evaluated``.
    """

    def __init__(self, run_dir: Path, step: int, last_step: int, *, evaluated: bool = True):
        self.metrics_path = run_dir / "metrics.jsonl"
        self.log_path = run_dir / "log.txt"
        rejected = keep_metrics_until(self.metrics_path, step, evaluated=evaluated)
        with told_as_user_error(run_dir):
            self.events = EventsWriter(str(run_dir / "events"))
            self.events.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
        self.bar = tqdm(total=last_step, initial=step, unit="step", dynamic_ncols=True, disable=not sys.stderr.isatty())
        if rejected:
            self.say(f"warning: {rejected} lines of {self.metrics_path} could not be read; they are in {REJECTED}")

    def advance(self) -> None:
        """One step is done."""
        with contextlib.suppress(OSError):
            self.bar.update()

    def record(self, step: int, kind: str, values: dict[str, float]) -> None:
        """A line of metrics: to metrics.jsonl, to TensorBoard and to the reader, beside the bar where there is one."""
        line = json.dumps({"step": step, "kind": kind} | {key: _finite(value) for key, value in values.items()})
        append_line(self.metrics_path, line)
        self._record_events(step, kind, values)
        if kind == "train":
            told = "loss {loss:.3f}, learning rate {learning_rate:.2e}, {tokens_per_second:,.0f} tokens/s"
            self.bar.set_postfix_str(told.format(**values), refresh=False)
        words = "  ".join(f"{key} {value:.4g}" for key, value in values.items())
        self.say(f"step {step:>6} {kind}  {words}", quietly=kind == "train" and not self.bar.disable)

    def say(self, text: str, *, quietly: bool = False) -> None:
        """A plain line in log.txt and, unless ``quietly``, on standard error, above the bar where there is one.

        A terminal or a reader that is gone ends nothing: log.txt has every line.
        """
        append_line(self.log_path, text)
        if not quietly:
            with contextlib.suppress(OSError):
                tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        """Flush the events and leave the bar as it stands."""
        with contextlib.suppress(OSError):
            self.events.close()
        with contextlib.suppress(OSError):
            self.bar.close()

    def _record_events(self, step: int, kind: str, values: dict[str, float]) -> None:
        # tensorboardX's own writer works in a thread: on a full disk that dies, and the training would wait for it.
        with told_as_user_error(self.metrics_path.with_name("events.out.tfevents")):
            for key, value in values.items():
                self.events.write_event(Event(wall_time=time.time(), step=step, summary=scalar(f"{kind}/{key}", value)))
            self.events.flush()


class Silence(Monitor):
    """The monitor of a process that is not the run's first: it shows nothing and writes nothing."""

    def __init__(self) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Nothing."""

    def record(self, step: int, kind: str, values: dict[str, float]) -> None:
        """Nothing."""

    def say(self, text: str, *, quietly: bool = False) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def keep_metrics_until(path: Path, step: int, *, evaluated: bool = True) -> int:
    """Drop the lines of later steps, of this step's evaluation unless it counts, and one that a crash cut short.

    Lines that are no metrics go to ``metrics.rejected.txt``; their number is returned.
    """
    if not path.exists():
        return 0
    *lines, last = path.read_bytes().split(b"\n")
    lines += [last] if _place(last) else []
    kept = [line for line in lines if (place := _place(line)) and place <= (step, evaluated)]
    rejected = [line for line in lines if line and not _place(line)]
    if rejected:
        write_atomically(path.with_name(REJECTED), b"".join(line + b"\n" for line in rejected))
    write_atomically(path, b"".join(line + b"\n" for line in kept))
    return len(rejected)


def _place(line: bytes) -> tuple[int, bool] | None:
    """A line's step, and whether it tells of the evaluation that ends the step; None for what is no line of metrics."""
    try:
        entry = json.loads(line)
        return (entry["step"], entry["kind"] == "valid") if type(entry["step"]) is int else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _finite(value: float) -> float | str:
    # JSON has no NaN or infinity; a reader in another language would stop at them.
    return value if math.isfinite(value) else str(value)
