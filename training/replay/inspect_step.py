"""All that one update of a run does: its loss, the gradient of each module, and each sentence pair that it sees."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Float, PyTree

from data.batches.packing import Batch, slice_rows
from data.tokenizer import Tokenizer
from model.config import ModelConfig
from model.layers import DropoutKey
from model.loss import Loss, cross_entropy
from model.transformer import Params, Transformer, build
from training.optimizer import learning_rate
from training.replay.replay import Replay, Stretch, digest
from training.state import TrainState, zero_sums
from training.step import decoder_output


@dataclass(frozen=True)
class ModuleNorms:
    """Euclidean norms over one module, in float64; ``not_finite`` counts numbers of its gradient."""

    name: str
    gradient: float
    parameters: float
    update: float
    not_finite: int


@dataclass(frozen=True)
class PairLoss:
    """A sentence pair of a batch, its place (row from 0, segment from 1), and its losses per target token in nats."""

    row: int
    segment: int
    source: str
    target: str
    tokens: int  # of the target, EOS included
    loss: float
    cross_entropy: float


@dataclass(frozen=True)
class Inspected:
    """All that is told of one update. Losses are per target token, the gradient norm is before clipping."""

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
    gradient_norm: float
    skipped: bool
    modules: list[ModuleNorms]
    pairs: list[PairLoss]


def inspect(replay: Replay) -> Inspected:
    """What the next update does. The replay stays before it."""
    stretch, state = replay.next_stretch, replay.state
    batch = stretch.stream.batch(replay.step)
    gradients, sums = stretch.compiled.gradients(state.params, batch, state.step)
    # The sums of this update alone have the digits of a line of metrics; the step gives up the state that it is given.
    copied = jax.tree.map(jnp.copy, state)._replace(sums=zero_sums())
    after, reading = stretch.compiled.train_step(copied, batch)
    skipped = int(reading.skipped_in_row) > 0
    tokens = float(sums.tokens)
    epoch, index = stretch.stream.epoch_of(replay.step)
    return Inspected(
        step=replay.step + 1,
        epoch=epoch,
        index=index,
        batch=digest(batch),
        rows=int(np.any(batch.target_segments > 0, axis=1).sum()),
        source_tokens=int((batch.source_segments > 0).sum()),
        target_tokens=int(tokens),
        learning_rate=float(learning_rate(stretch.training)(replay.step - int(state.skipped.in_all))),
        loss=float(reading.loss) if skipped else float(after.sums.smoothed) / tokens,
        cross_entropy=float(sums.cross_entropy if skipped else after.sums.cross_entropy) / tokens,
        gradient_norm=float(reading.gradient_norm),
        skipped=skipped,
        modules=module_norms(gradients, state.params, after.params),
        pairs=pair_losses(stretch, state, batch),
    )


def module_norms(gradients: Params, before: Params, after: Params) -> list[ModuleNorms]:
    """One entry a module, such as encoder.0, in the order of the parameters."""
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


def pair_losses(stretch: Stretch, state: TrainState, batch: Batch) -> list[PairLoss]:
    """Every pair of the batch that the next update sees, under the dropout of that update, by row and segment."""
    losses = token_losses(stretch, state, batch)
    pairs: list[PairLoss] = []
    for row in range(len(batch.target_segments)):
        segments = batch.target_segments[row]
        tokens = np.bincount(segments)
        smoothed, nats = (np.bincount(segments, weights=side[row]) / np.maximum(tokens, 1) for side in losses)
        texts = _texts(slice_rows(batch, slice(row, row + 1)), stretch.stream.tokenizer, len(tokens))
        pairs += [
            PairLoss(
                row, segment, *texts[segment - 1], int(tokens[segment]), float(smoothed[segment]), float(nats[segment])
            )
            for segment in range(1, len(tokens))
        ]
    return pairs


def token_losses(
    stretch: Stretch, state: TrainState, batch: Batch
) -> tuple[Float[np.ndarray, "B T"], Float[np.ndarray, "B T"]]:
    """Smoothed loss and cross-entropy at every target position, 0 at padding, with the dropout of the next update.

    The keys of dropout are those of ``make_gradients`` and ``over_slices``: of seed and step, then one a slice.
    """
    slices = stretch.training.accumulation
    key = jax.random.fold_in(jax.random.key(stretch.training.seed), state.step)
    keys = [key] if slices == 1 else list(jax.random.split(key, slices))
    losses_of = compiled_losses(stretch.model, stretch.stream.tokenizer.vocab_size, stretch.training.label_smoothing)
    parts = [
        jax.device_get(losses_of(state.params, slice_rows(batch, slice(i, None, slices)), keys[i]))
        for i in range(slices)
    ]
    return _in_turns([part.smoothed for part in parts]), _in_turns([part.cross_entropy for part in parts])


def _in_turns(parts: list[Float[np.ndarray, "rows T"]]) -> Float[np.ndarray, "B T"]:
    """The rows of a batch again, of which every slice has every so many."""
    return np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])


@cache
def compiled_losses(
    model: ModelConfig, vocab_size: int, smoothing: float
) -> Callable[[Params, Batch, DropoutKey], Loss]:
    """The losses of the tokens of one slice of a batch; each field is B × T."""
    return jax.jit(partial(_token_losses, build(model, vocab_size), smoothing))


def _token_losses(
    graphdef: nnx.GraphDef[Transformer], smoothing: float, params: Params, batch: Batch, key: DropoutKey
) -> Loss:
    """``summed_loss`` without its sum: each field is B × T."""
    model = nnx.merge(graphdef, params)
    logits = model.logits(decoder_output(model, batch, key))
    of_token = partial(cross_entropy, smoothing=smoothing)
    return jax.vmap(jax.vmap(of_token))(logits, batch.target_labels, batch.target_segments > 0)


def _texts(row: Batch, tokenizer: Tokenizer, end: int) -> list[tuple[str, str]]:
    """Source and target of the segments 1 to ``end`` - 1 of one row."""
    sources, targets = (
        tokenizer.decode([tokens[segments == segment].tolist() for segment in range(1, end)])
        for tokens, segments in (
            (row.source_tokens, row.source_segments),
            (row.target_labels, row.target_segments),
        )
    )
    return list(zip(sources, targets, strict=True))


def _norm(tree: PyTree) -> float:
    return math.sqrt(sum(float(np.square(np.asarray(leaf, np.float64)).sum()) for leaf in jax.tree.leaves(tree)))
