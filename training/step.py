"""The training step: loss, gradients, update. One compiled function takes a state and a batch to the next state."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PyTree

from data.batches.packing import Batch
from model.layers import Draws, DropoutKey
from model.loss import Loss, LossOfLogits, cross_entropy
from model.sharding import on_mesh
from model.transformer import Params, Tokens, Transformer, gather_embeddings
from training.config import TrainingConfig
from training.factors import draws_of
from training.objective import views_of
from training.optimizer import optimizer
from training.state import Skipped, Sums, TrainState


class StepReport(NamedTuple):
    """What a step reports besides the new state."""

    loss: Float[Array, ""]  # the objective per target token
    gradient_norm: Float[Array, ""]  # before clipping
    skipped_in_row: Int[Array, ""]


TrainStep = Callable[[TrainState, Batch], tuple[TrainState, StepReport]]
LossStep = Callable[[Params, Batch], Loss]
Gradients = Callable[[Params, Batch, Int[Array, ""]], tuple[Params, Loss]]
SummedGradients = Callable[[Params, Batch, Draws], tuple[Params, Loss]]
Update = Callable[[TrainState, Params, Loss, Array], tuple[TrainState, StepReport]]


def make_train_step(
    graphdef: nnx.GraphDef[Transformer], config: TrainingConfig, like: TrainState | None = None
) -> TrainStep:
    """One compiled update: ``(state, batch) → (state, report)``. The old state is donated.

    ``like`` gives each array's sharding (``abstract_state`` in devices/mesh.py); without it, all are on one device.
    """
    gradients_of, update = make_gradients(graphdef, config), make_update(config)

    def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, StepReport]:
        gradients, sums = gradients_of(state.params, batch, state.step)
        return update(state, gradients, sums, count_source_tokens(batch))

    if like is None:
        return jax.jit(train_step, donate_argnums=0)
    shardings = jax.tree.map(lambda leaf: leaf.sharding, like)
    on_devices = on_mesh(shardings.step.mesh, train_step)
    return jax.jit(on_devices, donate_argnums=0, out_shardings=(shardings, shardings.step))


def make_update(config: TrainingConfig) -> Update:
    """``(state, gradient per target token, loss sums, source tokens) → (state, report)``.

    If the loss, gradient or update is not finite, the step counts as a step but only changes the ``skipped`` counts.
    """
    transform = optimizer(config)

    def update(
        state: TrainState, gradients: Params, sums: Loss, source_tokens: Float[Array, ""]
    ) -> tuple[TrainState, StepReport]:
        norm = optax.tree.norm(gradients)
        updates, opt_state = transform.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        averaged = None if state.averaged is None else moving_average(state.averaged, params, state.step, config)
        added = add_sums(state.sums, sums, source_tokens, norm)

        is_finite = jnp.isfinite(sums.objective) & jnp.isfinite(norm) & jnp.isfinite(optax.tree.norm(updates))
        new, old = (params, opt_state, averaged, added), (state.params, state.opt_state, state.averaged, state.sums)
        params, opt_state, averaged, added = jax.tree.map(lambda a, b: jnp.where(is_finite, a, b), new, old)
        skipped = count_skipped(state.skipped, is_finite)
        state = TrainState(state.step + 1, params, opt_state, averaged, added, skipped)
        return state, StepReport(sums.objective / sums.tokens, norm, skipped.in_row)

    return update


def make_gradients(graphdef: nnx.GraphDef[Transformer], config: TrainingConfig) -> Gradients:
    """``(parameters, batch, number of earlier steps) → (gradient per target token, loss sums)``.

    The dropout of a step depends only on the seed and the step. Gradients are summed over the slices of a batch and
    divided once by its number of real target tokens, so accumulation changes only memory and, since each slice has its
    own key, the dropout draws.
    """
    root_key = jax.random.key(config.seed)
    summed_gradients = accumulate(make_summed_gradients(graphdef, config), config.accumulation)

    def gradients_of(params: Params, batch: Batch, step: Int[Array, ""]) -> tuple[Params, Loss]:
        key = jax.random.fold_in(root_key, step)
        gradients, sums = summed_gradients(params, batch, draws_of(config, key, step))
        return per_token(gradients, sums), sums

    return gradients_of


def make_summed_gradients(graphdef: nnx.GraphDef[Transformer], config: TrainingConfig) -> SummedGradients:
    """``(parameters, batch, draws) → (gradient of the loss summed over target tokens, loss sums)``."""

    def objective(params: Params, batch: Batch, draws: Draws) -> tuple[Float[Array, ""], Loss]:
        sums = summed_loss(graphdef, params, *views_of(batch, config, draws))
        return sums.objective, sums

    return jax.grad(objective, has_aux=True)


def per_token(gradients: Params, sums: Loss) -> Params:
    return jax.tree.map(lambda leaf: leaf / sums.tokens, gradients)


def summed_loss(
    graphdef: nnx.GraphDef[Transformer], params: Params, batch: Batch, loss: LossOfLogits, dropout_key: DropoutKey
) -> Loss:
    """Loss sums of a batch under teacher forcing."""
    model = nnx.merge(graphdef, gather_embeddings(params))
    decoded = decoder_output(model, batch, dropout_key)
    return model.embedding.loss(loss, decoded, batch.target_labels, batch.target_segments > 0)


def decoder_output(model: Transformer, batch: Batch, dropout_key: DropoutKey) -> Float[Array, "B T D"]:
    """The decoder's output at every target position under teacher forcing."""
    source = Tokens(batch.source_tokens, batch.source_segments, batch.source_positions)
    target = Tokens(batch.target_inputs, batch.target_segments, batch.target_positions)
    return model(source, target, dropout_key=dropout_key)


def accumulate(summed_gradients: SummedGradients, slices: int) -> SummedGradients:
    """The same sums, computed for one slice of the batch's rows at a time to save activation memory."""
    if slices == 1:
        return summed_gradients

    def accumulated(params: Params, batch: Batch, draws: Draws) -> tuple[Params, Loss]:
        # Slices interleave the rows, so that each device holds its share of every slice.
        sliced = jax.tree.map(lambda rows: rows.reshape(-1, slices, *rows.shape[1:]).swapaxes(0, 1), batch)

        def add(total: PyTree, slice_and_key: tuple[Batch, Array]) -> tuple[PyTree, None]:
            rows, key = slice_and_key
            return jax.tree.map(jnp.add, total, summed_gradients(params, rows, draws._replace(key=key))), None

        zero = jax.tree.map(jnp.zeros_like, params), Loss(*(jnp.zeros(()) for _ in Loss._fields))
        return jax.lax.scan(add, zero, (sliced, jax.random.split(draws.key, slices)))[0]

    return accumulated


def moving_average(averaged: Params, params: Params, step: Int[Array, ""], config: TrainingConfig) -> Params:
    """Exponential moving average. Its decay starts low, min(decay, (1 + step) / (10 + step)), to forget the start."""
    decay = jnp.minimum(config.ema_decay, (1 + step) / (10 + step))
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, averaged, params)


def count_source_tokens(batch: Batch) -> Float[Array, ""]:
    return jnp.sum(batch.source_segments > 0, dtype=jnp.float32)


def add_sums(total: Sums, loss: Loss, source_tokens: Float[Array, ""], gradient_norm: Float[Array, ""]) -> Sums:
    """The sums including one more step."""
    of_loss, steps = (loss.objective, loss.cross_entropy, loss.tokens), jnp.ones(())
    new = Sums(*of_loss, source_tokens, gradient_norm, steps, loss.divergence)
    return jax.tree.map(jnp.add, total, new)


def count_skipped(skipped: Skipped, is_finite: Bool[Array, ""]) -> Skipped:
    """The counts including one more step."""
    new = 1 - is_finite.astype(jnp.int32)
    return Skipped(jnp.where(is_finite, 0, skipped.in_row + 1), skipped.since_log + new, skipped.in_all + new)


def make_loss_step(graphdef: nnx.GraphDef[Transformer], smoothing: float, mesh: Mesh | None = None) -> LossStep:
    """The compiled loss of a batch without dropout, for validation."""

    def loss_step(params: Params, batch: Batch) -> Loss:
        return summed_loss(graphdef, params, batch, partial(cross_entropy, smoothing=smoothing), None)

    if mesh is None:
        return jax.jit(loss_step)
    return jax.jit(on_mesh(mesh, loss_step), out_shardings=NamedSharding(mesh, PartitionSpec()))
