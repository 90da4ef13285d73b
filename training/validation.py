"""Validation during training: the loss, and BLEU by the evaluator and the search settings that eval.py uses."""

from dataclasses import dataclass
from pathlib import Path

import jax

from data.batches.packing import Batch, slice_rows
from data.prepare import Prepared
from evaluation.conditions import Conditions
from evaluation.evaluate import evaluate
from evaluation.report import write_report
from evaluation.translate import Translator
from model.transformer import Params
from training.devices.distributed import is_first
from training.devices.mesh import Devices
from training.run.metrics import Monitor
from training.state import TrainState
from training.step import LossStep


@dataclass(frozen=True)
class Validation:
    """Evaluates a state on the validation pairs and keeps the result in the run directory."""

    run_dir: Path
    prepared: Prepared
    devices: Devices
    batches: list[Batch]
    translator: Translator
    loss_step: LossStep
    conditions: Conditions

    def evaluate(self, state: TrainState, minutes: float, monitor: Monitor) -> tuple[float, float]:
        """Evaluate the state; returns BLEU and loss. ``minutes`` is the training time so far, for the metrics."""
        step, params = int(state.step), state.inference_params
        losses = self.mean_losses(params)
        with jax.set_mesh(self.devices.mesh):
            evaluation = evaluate(self.translator, (self.devices.replicate(params),), self.prepared.valid)
        scores = {"bleu": evaluation.scores.bleu, "chrf": evaluation.scores.chrf, "minutes": minutes}
        monitor.record(step, "valid", losses | scores)
        if is_first():
            path, file = self.run_dir / "eval" / "valid.json", self.prepared.report.files.valid
            write_report(path, evaluation, step=step, file=file, conditions=self.conditions)
        for source, translation in list(zip(evaluation.sources, evaluation.translations, strict=True))[:3]:
            monitor.say(f"    {source} → {translation}")
        return evaluation.scores.bleu, losses["loss"]

    def mean_losses(self, params: Params) -> dict[str, float]:
        """Loss and cross-entropy per target token. Each process reads its rows of the batches."""
        rows = self.devices.local_rows
        losses = [self.loss_step(params, self.devices.place(slice_rows(batch, rows))) for batch in self.batches]
        total = jax.tree.map(lambda *sums: sum(map(float, sums)), *losses)
        return {"loss": total.objective / total.tokens, "cross_entropy": total.cross_entropy / total.tokens}
