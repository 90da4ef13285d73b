"""Validation during training: the loss, and BLEU with the same evaluator and search settings as eval.py."""

from dataclasses import dataclass
from pathlib import Path

import jax
from jax.sharding import NamedSharding, PartitionSpec

from data.batches.packing import Batch, slice_rows
from data.pairs import Pairs
from data.prepare import Prepared
from evaluation.evaluate import Evaluation, evaluate
from evaluation.report import Checkpoint, ReportKey, write_report
from evaluation.translate import Translator
from model.transformer import Params
from training.devices.distributed import is_first
from training.devices.mesh import Devices
from training.progress import describe_rise
from training.run.config_history import change_steps
from training.run.layout import report_path
from training.run.lock import check_not_lost
from training.run.metrics import read_metrics
from training.run.monitor import Monitor
from training.state import TrainState
from training.step import LossStep

SHOWN = 10  # sentences, in TensorBoard


@dataclass(frozen=True)
class HeldOut:
    """The validation pairs of a direction, with the ``name`` of its report and the ``ending`` of its metrics."""

    pairs: Pairs
    translator: Translator
    report_key: ReportKey
    name: str = "valid"
    ending: str = ""


@dataclass(frozen=True)
class Validation:
    """Evaluates a state on the validation pairs of each direction and keeps the results in the run directory."""

    run_dir: Path
    prepared: Prepared
    devices: Devices
    batches: list[Batch]
    loss_step: LossStep
    sets: list[HeldOut]

    def evaluate(self, state: TrainState, minutes: float, monitor: Monitor) -> tuple[float, float]:
        """Evaluate the state; returns BLEU and loss. ``minutes`` is the training time so far, for the metrics.

        With several directions, BLEU and chrF are means; each direction's own scores are also recorded.
        """
        step, params = int(state.step), state.inference_params
        losses = self.mean_losses(params)
        # whole on every device: a search reads all parameters for every token
        everywhere = (jax.device_put(params, NamedSharding(self.devices.mesh, PartitionSpec())),)
        evaluations = [evaluate(each.translator, everywhere, each.pairs) for each in self.sets]
        scores = mean_scores(evaluations)
        if len(self.sets) > 1:
            for held_out, evaluation in zip(self.sets, evaluations, strict=True):
                scores |= {f"{name}{held_out.ending}": score for name, score in mean_scores([evaluation]).items()}
        check_not_lost(self.run_dir)  # as before every line of metrics
        monitor.record(step, "valid", losses | scores | {"minutes": minutes})
        for held_out, evaluation in zip(self.sets, evaluations, strict=True):
            if is_first():
                path, file = report_path(self.run_dir, held_out.name), self.prepared.report.files.valid
                write_report(path, evaluation, Checkpoint(step, ""), file, held_out.report_key)
            if evaluation.scores.bleu_note:
                monitor.say(f"    {evaluation.scores.bleu_note}")
            monitor.show_samples(step, held_out.name, evaluation.sentences[:SHOWN])
            for sentence in evaluation.sentences[:3]:
                monitor.say(f"    {sentence.source} → {sentence.translation}")
        if rise := describe_rise(losses_so_far(self.run_dir)):
            monitor.say(f"    {rise}")
        return scores["bleu"], losses["loss"]

    def mean_losses(self, params: Params) -> dict[str, float]:
        """Loss and cross-entropy per target token. Each process reads its rows of the batches."""
        rows = self.devices.local_rows
        losses = [self.loss_step(params, self.devices.place(slice_rows(batch, rows))) for batch in self.batches]
        total = jax.tree.map(lambda *sums: sum(map(float, sums)), *losses)
        return {"loss": total.objective / total.tokens, "cross_entropy": total.cross_entropy / total.tokens}


def mean_scores(evaluations: list[Evaluation]) -> dict[str, float]:
    """The means of BLEU and of chrF."""
    scores = [evaluation.scores for evaluation in evaluations]
    return {name: sum(vars(each)[name] for each in scores) / len(scores) for name in ("bleu", "chrf")}


def losses_so_far(run_dir: Path) -> list[tuple[int, float]]:
    """The loss of each evaluation and its step, since the run's config or corpus last changed."""
    changed = max(change_steps(run_dir), default=-1)
    lines = [line for line in read_metrics(run_dir) if line["kind"] == "valid" and line["step"] > changed]
    # "nan" is text, since JSON has no such number
    return [(line["step"], float(line["loss"])) for line in lines if "loss" in line]
