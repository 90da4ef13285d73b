"""Progress of a run: a bar on standard error, the log, metrics.jsonl and TensorBoard events.

Importing this module imports PyTorch if installed, because tensorboardX does; importing ``metrics`` does not.
"""

import contextlib
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.proto.summary_pb2 import Summary
from tensorboardX.summary import hparams, scalar
from tensorboardX.summary import text as summary_of_text
from tqdm import tqdm

from common.files import append_line, explain_write_errors
from common.text_table import Table, as_markdown
from evaluation.sentences import Sentence
from training.devices.distributed import is_first
from training.run.layout import EVENTS, METRICS, REJECTED_METRICS
from training.run.log import tell, warn
from training.run.metrics import finite_or_text, rewind_metrics


class Monitor:
    """Reports the progress of one run from ``step`` on; processes other than the first show and write nothing.

    It first drops the lines of ``metrics.jsonl`` that the run will write again (see ``rewind_metrics``).
    """

    def __init__(self, run_dir: Path, step: int, last_step: int, *, evaluated: bool = True):
        self.is_first, self.run_dir, self.metrics_path = is_first(), run_dir, run_dir / METRICS
        is_hidden = not (self.is_first and sys.stderr.isatty())
        rejected = rewind_metrics(self.metrics_path, step, evaluated=evaluated) if self.is_first else 0
        if self.is_first:
            with explain_write_errors(run_dir):
                self.events = EventsWriter(str(run_dir / EVENTS))
                self.events.write_event(Event(step=step + 1, session_log=SessionLog(status=SessionLog.START)))
        self.bar = tqdm(total=last_step, initial=step, unit="step", dynamic_ncols=True, disable=is_hidden)
        if rejected:
            warn(run_dir, f"{rejected} lines of {self.metrics_path} could not be read; they are in {REJECTED_METRICS}")

    def advance(self) -> None:
        with contextlib.suppress(OSError):
            self.bar.update()

    def record(self, step: int, kind: str, values: dict[str, float]) -> None:
        """Write values of ``kind`` train or valid to metrics.jsonl, TensorBoard and log.txt, and print them."""
        if not self.is_first:
            return
        now = datetime.now(UTC)
        line = {"step": step, "kind": kind, "time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        append_line(self.metrics_path, json.dumps(line | {key: finite_or_text(value) for key, value in values.items()}))
        self._show(step, [scalar(f"{kind}/{key}", value) for key, value in values.items()], now)
        if kind == "train":
            postfix = "loss {loss:.3f}, learning rate {learning_rate:.2e}, {tokens_per_second:,.0f} tokens/s"
            self.bar.set_postfix_str(postfix.format(**values), refresh=False)
        text = "  ".join(f"{key} {value:.4g}" for key, value in values.items())
        tell(self.run_dir, f"step {step:>6} {kind}  {text}", now)

    def show_settings(self, step: int, settings: dict[str, object]) -> None:
        """Show the config's values, by their keys, among TensorBoard's hyperparameters."""
        values = {key: value if isinstance(value, int | float | str) else str(value) for key, value in settings.items()}
        self._show(step, hparams(values, {"valid/bleu": 0.0, "valid/loss": 0.0})[:2])  # the third would end the run

    def show_samples(self, step: int, set_name: str, sentences: Sequence[Sentence]) -> None:
        """Show sources, references and translations as a table among TensorBoard's texts."""
        rows = [[each.source, each.references[0], each.translation] for each in sentences]
        table = as_markdown(Table(set_name, "", ["source", "reference", "translation"], rows))
        self._show(step, [summary_of_text(f"{set_name}/samples", table)])

    def _show(self, step: int, summaries: Iterable[Summary], now: datetime | None = None) -> None:
        if not self.is_first:
            return
        seconds = (now or datetime.now(UTC)).timestamp()
        # tensorboardX's SummaryWriter writes in a thread, which dies on a full disk, leaving training to wait for it.
        with explain_write_errors(self.metrics_path.with_name("events.out.tfevents")):
            for summary in summaries:
                self.events.write_event(Event(wall_time=seconds, step=step, summary=summary))
            self.events.flush()

    def say(self, text: str) -> None:
        """Add a line to log.txt and to standard output, above the bar."""
        if self.is_first:
            tell(self.run_dir, text)

    def close(self) -> None:
        """Flush the events and leave the bar as it is."""
        if self.is_first:
            with contextlib.suppress(OSError):
                self.events.close()
        with contextlib.suppress(OSError):
            self.bar.close()
