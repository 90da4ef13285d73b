"""What a run shows of itself: a progress bar or plain lines, log.txt, metrics.jsonl and TensorBoard events."""

import json
import math
import sys
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter
from tqdm import tqdm

from data.files import write_atomically


class Monitor:
    """Progress of one run in its directory, continued after ``step`` when the run is.

    Lines of ``metrics.jsonl`` after ``step`` are dropped first: those steps will be taken, and told, again.
    """

    def __init__(self, run_dir: Path, step: int, last_step: int):
        self.metrics_path = run_dir / "metrics.jsonl"
        self.log_path = run_dir / "log.txt"
        keep_metrics_until(self.metrics_path, step)
        self.events = SummaryWriter(str(run_dir), purge_step=step + 1)
        self.bar = tqdm(total=last_step, initial=step, unit="step", dynamic_ncols=True, disable=not sys.stderr.isatty())

    def advance(self) -> None:
        """One step is done."""
        self.bar.update()

    def record(self, step: int, kind: str, values: dict[str, Any]) -> None:
        """A line of metrics: to metrics.jsonl, to TensorBoard and, in words, to the reader."""
        line = json.dumps({"step": step, "kind": kind} | {key: _finite(value) for key, value in values.items()})
        with open(self.metrics_path, "a") as file:
            file.write(line + "\n")
        for key, value in values.items():
            if isinstance(value, float):
                self.events.add_scalar(f"{kind}/{key}", value, step)
        self.say(f"step {step:>6} {kind} " + "  ".join(f"{key} {_readable(value)}" for key, value in values.items()))

    def describe(self, text: str) -> None:
        """A few words beside the progress bar."""
        self.bar.set_postfix_str(text)

    def say(self, text: str) -> None:
        """A plain line, above the bar where there is one, and in log.txt."""
        tqdm.write(text, file=sys.stderr)
        with open(self.log_path, "a") as file:
            file.write(text + "\n")

    def close(self) -> None:
        """Flush the events and leave the bar as it stands."""
        self.events.close()
        self.bar.close()


def keep_metrics_until(path: Path, step: int) -> None:
    """Drop the lines of steps after ``step``, and a last line that a crash cut short."""
    if not path.exists():
        return
    whole = [line for line in path.read_text().split("\n") if line.endswith("}")]
    kept = [line for line in whole if json.loads(line)["step"] <= step]
    write_atomically(path, "".join(line + "\n" for line in kept))


def _finite(value: Any) -> Any:
    # JSON has no NaN or infinity; a reader in another language would stop at them.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _readable(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
