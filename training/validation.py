"""Validation during training: the loss, and BLEU by the evaluator and the search settings that eval.py uses."""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
from flax import nnx

from data.batches.packing import Batch, slice_rows
from data.batches.stream import validation_batches
from data.config import DataConfig
from data.prepare import Prepared
from evaluation.evaluate import Evaluation, evaluate, write_report
from evaluation.translate import Translator
from model.config import DecodingConfig, ModelConfig
from model.loss import Loss
from model.transformer import Params, Transformer
from training.config import TrainingConfig
from training.devices.distributed import is_first
from training.devices.mesh import Devices
from training.devices.preflight import check_position_table
from training.run.metrics import Monitor
from training.state import TrainState
from training.step import make_loss_step


class Validation:
    """Evaluates a state on the validation pairs and keeps the result in the run directory."""

    def __init__(
        self,
        run_dir: Path,
        graphdef: nnx.GraphDef[Transformer],
        model: ModelConfig,
        training: TrainingConfig,
        data: DataConfig,
        decoding: DecodingConfig,
        prepared: Prepared,
        devices: Devices,
    ) -> None:
        """UserError if a validation sentence is too long for learned positions."""
        self.run_dir, self.decoding, self.prepared, self.devices = run_dir, decoding, prepared, devices
        self.loss_step = make_loss_step(graphdef, training.label_smoothing, devices.mesh)
        lengths = prepared.stream.row_lengths
        self.batches = validation_batches(prepared.valid, prepared.tokenizer, data, lengths)
        check_position_table(model, lengths, self.batches)
        self.translator = Translator((model,), prepared.tokenizer, decoding, data.row_length)

    def run(self, state: TrainState, minutes: float, monitor: Monitor) -> float:
        """Evaluate the state; returns BLEU. ``minutes`` is the training time so far, for the line of metrics."""
        step, params = int(state.step), state.inference_params
        losses = mean_losses(self.loss_step, params, self.batches, self.devices)
        with jax.set_mesh(self.devices.mesh):
            evaluation = evaluate(self.translator, (self.devices.replicate(params),), self.prepared.valid)
        scores = {"bleu": evaluation.scores.bleu, "chrf": evaluation.scores.chrf, "minutes": minutes}
        monitor.record(step, "valid", losses | scores)
        self._write(step, evaluation)
        for source, translation in list(zip(evaluation.sources, evaluation.translations, strict=True))[:3]:
            monitor.say(f"    {source} → {translation}")
        return evaluation.scores.bleu

    def _write(self, step: int, evaluation: Evaluation) -> None:
        if is_first():
            file = self.prepared.report.files.valid
            write_report(self.run_dir, "valid", evaluation, step=step, file=file, decoding=self.decoding)


def mean_losses(
    loss_step: Callable[[Params, Batch], Loss], params: Params, batches: Sequence[Batch], devices: Devices
) -> dict[str, float]:
    """Loss and cross-entropy per target token of whole batches, of which each process reads its rows."""
    losses = [loss_step(params, devices.place(slice_rows(batch, devices.local_rows))) for batch in batches]
    tokens = sum(float(loss.tokens) for loss in losses)
    return {
        "loss": sum(float(loss.smoothed) for loss in losses) / tokens,
        "cross_entropy": sum(float(loss.cross_entropy) for loss in losses) / tokens,
    }
