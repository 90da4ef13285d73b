"""Inspect one update of a run: its loss, the gradient of each module, and every sentence pair in its batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, PyTree

from data.batches.packing import Batch, slice_rows
from model.config import ModelConfig
from model.layers import Draws
from model.loss import Loss
from model.transformer import Params, build
from training.config import TrainingConfig
from training.devices.any_mesh import GROUPS
from training.factors import draws_of
from training.objective import views_of
from training.optimizer import learning_rate
from training.progress import Progress
from training.replay.comparison import find_leaf_difference
from training.replay.replay import RecordedRun, Replay, Setup, count_updates, hash_batch, show_progress, start_replay
from training.run.checkpoint import read_notes
from training.run.metrics import finite_or_text
from training.run.retention import good_steps
from training.state import TrainState, zero_sums
from training.step import decoder_output


@dataclass(frozen=True)
class ModuleNorms:
    """Euclidean norms over one module, in float64; ``not_finite`` counts such numbers in its gradient."""

    name: str
    gradient: float
    parameters: float
    update: float
    not_finite: int

    @property
    def update_ratio(self) -> float:
        return self.update / self.parameters if self.parameters else math.nan


@dataclass(frozen=True)
class PairLoss:
    """A sentence pair, its place in the batch (row from 0, segment from 1), and its losses per target token in nats."""

    row: int
    segment: int
    source: str
    target: str
    tokens: int  # of the target, including EOS
    loss: float
    cross_entropy: float


@dataclass(frozen=True)
class Inspection:
    """Update ``step`` of a run, replayed from step ``start``. Losses are per target token."""

    run: str
    start: int
    step: int
    epoch: int
    index: int
    batch: str
    rows: int
    source_tokens: int
    target_tokens: int
    learning_rate: float
    loss: float
    cross_entropy: float
    gradient_norm: float  # before clipping
    skipped: bool
    modules: list[ModuleNorms]
    pairs: list[PairLoss]
    verified: dict[str, str]  # how the update compares with each of the run's records


def inspect_update(run: RecordedRun, step: int) -> Inspection:
    """Replay a run up to update ``step``, inspect that update, and compare it with the run's records."""
    run.check_step(step)
    start = max((good for good in good_steps(run.folder) if good < step), default=0)
    replay = start_replay(run, start, step)
    for _ in show_progress(range(start, step - 1), replay):
        replay.take_update()
    return _inspect_next_update(replay, start)


def _inspect_next_update(replay: Replay, start: int) -> Inspection:
    setup, state = replay.next_setup, replay.state
    batch = setup.stream.batch(replay.step)
    gradients, sums = setup.programs.gradients(state.params, batch, state.step)
    # The step donates its state. With sums that start at zero, it returns exactly the digits of a line of metrics.
    after, report = setup.programs.train_step(jax.tree.map(jnp.copy, state)._replace(sums=zero_sums()), batch)
    skipped, tokens = int(report.skipped_in_row) > 0, float(sums.tokens)
    epoch, index = setup.stream.epoch_of(replay.step)
    return Inspection(
        run=str(replay.run.folder),
        start=start,
        step=replay.step + 1,
        epoch=epoch,
        index=index,
        batch=hash_batch(batch),
        rows=int(np.any(batch.target_segments > 0, axis=1).sum()),
        source_tokens=int((batch.source_segments > 0).sum()),
        target_tokens=int(tokens),
        learning_rate=float(learning_rate(setup.training)(replay.step - int(state.skipped.in_all))),
        loss=float(report.loss) if skipped else float(after.sums.smoothed) / tokens,
        cross_entropy=float(sums.cross_entropy if skipped else after.sums.cross_entropy) / tokens,
        gradient_norm=float(report.gradient_norm),
        skipped=skipped,
        modules=module_norms(gradients, state.params, after.params),
        pairs=pair_losses(setup, state, batch),
        verified=_verify_next_update(replay),  # last, since it donates the state
    )


def _verify_next_update(replay: Replay) -> dict[str, str]:
    """Take the next update and compare it with the run's records: metrics, batches and checkpoint, if any."""
    update, run, verdicts = replay.take_update(), replay.run, {}
    step, recorded = update.step, run.metrics.get(update.step)
    if update.metrics is not None and recorded is not None:
        new = {key: finite_or_text(value) for key, value in update.metrics.items() if key in recorded}
        differing = (key for key in new if recorded[key] != new[key])
        differences = [f"{key} {recorded[key]} recorded, {new[key]} replayed" for key in differing]
        verdicts["metrics"] = "; ".join(differences) or "equal, to the last digit"
    if step in good_steps(run.folder):
        same_batches = Progress.from_notes(read_notes(run.folder, step)).batches == replay.batches
        difference = find_leaf_difference(replay.state, run.restore_state(step))
        verdicts["batches"] = f"{'equal' if same_batches else 'differ'}, 1 to {step}"
        verdicts["checkpoint"] = f"differs, {difference}" if difference else "equal, bit for bit"
    return verdicts


def module_norms(gradients: Params, before: Params, after: Params) -> list[ModuleNorms]:
    """One entry per module, such as encoder.0, in the order of the parameters."""
    return [
        ModuleNorms(
            name=f"{name}.{child}",
            gradient=_norm(leaves),
            parameters=_norm(before[name][child]),
            update=_norm(jax.tree.map(jnp.subtract, after[name][child], before[name][child])),
            not_finite=sum(int((~np.isfinite(leaf)).sum()) for leaf in jax.tree.leaves(leaves)),
        )
        for name, part in gradients.items()
        for child, leaves in part.items()
    ]


def pair_losses(setup: Setup, state: TrainState, batch: Batch) -> list[PairLoss]:
    """The loss of every pair in the batch, under the dropout of the next update, by row and segment."""
    compiled = compile_token_losses(setup.model, setup.stream.tokenizer.vocab_size, setup.training)
    losses = compiled(state.params, batch, state.step)
    pairs: list[PairLoss] = []
    for row, segments in enumerate(batch.target_segments):
        tokens = np.bincount(segments)
        of_row = (np.asarray(losses.objective)[row], np.asarray(losses.cross_entropy)[row])
        loss, nats = (np.bincount(segments, weights=weights) / np.maximum(tokens, 1) for weights in of_row)
        sides = (batch.source_tokens[row], batch.source_segments[row]), (batch.target_labels[row], segments)
        parts = ([ids[places == part].tolist() for part in range(1, len(tokens))] for ids, places in sides)
        texts = zip(*map(setup.stream.tokenizer.decode, parts), strict=True)
        pairs += [
            PairLoss(row, segment, source, target, int(tokens[segment]), float(loss[segment]), float(nats[segment]))
            for segment, (source, target) in enumerate(texts, start=1)
        ]
    return pairs


@cache
def compile_token_losses(
    config: ModelConfig, vocab_size: int, training: TrainingConfig
) -> Callable[[Params, Batch, Int[Array, ""]], Loss]:
    """Compile the losses of single tokens in the update after ``step`` others; each field of the result is B × T.

    The dropout keys come from seed and step, split over slices, as in ``make_gradients`` and ``accumulate``, or as in
    ``training_sums`` in any_mesh.py, where slices are groups of neighbouring rows.
    """
    graphdef, in_groups = build(config, vocab_size), training.reproducible == "any_mesh"
    slices = GROUPS if in_groups else training.accumulation

    def losses_of_slice(params: Params, batch: Batch, draws: Draws) -> Loss:
        model, (views, loss, dropout_key) = nnx.merge(graphdef, params), views_of(batch, training, draws)
        logits = model.logits(decoder_output(model, views, dropout_key))

        def by_position(array: Array) -> Array:
            """From "views·B T …" to "B T views …"."""
            return jnp.moveaxis(array.reshape(len(batch.target_labels), -1, *array.shape[1:]), 1, 2)

        arrays = map(by_position, (logits, views.target_labels, views.target_segments > 0))
        return jax.vmap(jax.vmap(loss))(*arrays)

    def token_losses(params: Params, batch: Batch, step: Int[Array, ""]) -> Loss:
        key = jax.random.fold_in(jax.random.key(training.seed), step)
        keys = key[None] if slices == 1 else jax.random.split(key, slices)
        rows = np.arange(len(batch.target_labels))
        places = rows.reshape(slices, -1) if in_groups else rows.reshape(-1, slices).T
        parts = [slice_rows(batch, of_slice) for of_slice in places]
        draws = [draws_of(training, part_key, step) for part_key in keys]
        losses = [losses_of_slice(params, *part_and_draws) for part_and_draws in zip(parts, draws, strict=True)]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[np.argsort(places, axis=None)], *losses)

    return jax.jit(token_losses)


def _norm(tree: PyTree) -> float:
    return math.sqrt(sum(float(np.square(np.asarray(leaf, np.float64)).sum()) for leaf in jax.tree.leaves(tree)))


def sort_by_loss(pairs: list[PairLoss]) -> list[PairLoss]:
    """The worst first, starting with non-finite losses."""
    return sorted(pairs, key=lambda pair: -pair.loss if math.isfinite(pair.loss) else -math.inf)


def format_inspection(update: Inspection) -> str:
    place = f"checkpoint {update.start}" if update.start else "the start"
    if repeated := update.step - 1 - update.start:
        place += f", {count_updates(repeated)} repeated"
    outcome = "skipped: loss, gradient or update is not finite" if update.skipped else "taken"
    lines = [
        f"run            {update.run}",
        f"step           {update.step}, batch {update.index} of epoch {update.epoch} (from 0)",
        f"batch          SHA-256 {update.batch}",
        f"               {update.rows} rows, {len(update.pairs)} pairs, {update.source_tokens} source + "
        f"{update.target_tokens} target tokens",
        f"rebuilt from   {place}",
        f"learning rate  {update.learning_rate!r}",
        f"loss           {update.loss!r} per target token, cross-entropy {update.cross_entropy!r}",
        f"gradient norm  {update.gradient_norm!r} before clipping",
        f"update         {outcome}",
        *(f"{record:<14} {verdict}" for record, verdict in update.verified.items()),
        f"\n{'module':<24} {'gradient':>11} {'parameters':>11} {'update':>11} {'update/parameters':>18}  not finite",
        *(
            f"{module.name:<24} {module.gradient:>11.4g} {module.parameters:>11.4g} {module.update:>11.4g} "
            f"{module.update_ratio:>18.3g}  {module.not_finite or ''}".rstrip()
            for module in update.modules
        ),
        "\nrow segment      loss tokens  source → target",
        *(
            f"{pair.row:>3} {pair.segment:>7} {pair.loss:>9.4f} {pair.tokens:>6}  {pair.source} → {pair.target}"
            for pair in update.pairs
        ),
    ]
    return "\n".join(lines)
