"""What a run shows of itself: a progress bar or plain lines, log.txt, metrics.jsonl and TensorBoard events."""

import json
import math
import sys
from pathlib import Path

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

    def record(self, step: int, kind: str, values: dict[str, float]) -> None:
        """A line of metrics: to metrics.jsonl, to TensorBoard and to the reader, beside the bar where there is one."""
        line = json.dumps({"step": step, "kind": kind} | {key: _finite(value) for key, value in values.items()})
        with open(self.metrics_path, "a") as file:
            file.write(line + "\n")
        for key, value in values.items():
            self.events.add_scalar(f"{kind}/{key}", value, step)
        if kind == "train":
            told = "loss {loss:.3f}, learning rate {learning_rate:.2e}, {tokens_per_second:,.0f} tokens/s"
            self.bar.set_postfix_str(told.format(**values))
        words = "  ".join(f"{key} {value:.4g}" for key, value in values.items())
        self.say(f"step {step:>6} {kind}  {words}", quietly=kind == "train" and not self.bar.disable)

    def say(self, text: str, *, quietly: bool = False) -> None:
        """A plain line in log.txt and, unless ``quietly``, on standard error, above the bar where there is one."""
        if not quietly:
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


def _finite(value: float) -> float | str:
    # JSON has no NaN or infinity; a reader in another language would stop at them.
    return value if math.isfinite(value) else str(value)
