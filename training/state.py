"""Everything that evolves on the device, and the one function that evolves it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from data.batches.packing import Batch
from model.config import ModelConfig
from model.layers import DropoutKey
from model.loss import Loss
from model.sharding import mesh_of, on_mesh
from model.transformer import Params, Tokens, Transformer, init_params, structure
from training.config import TrainingConfig
from training.optimizer import optimizer


class Sums(NamedTuple):
    """Summed since the last line of metrics; part of the state, so that a restart in between loses nothing."""

    smoothed: Float[Array, ""]
    cross_entropy: Float[Array, ""]
    target_tokens: Float[Array, ""]
    source_tokens: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    steps: Float[Array, ""]


class Skipped(NamedTuple):
    """Updates that were left out because they, their loss or their gradient were not finite."""

    in_row: Int[Array, ""]  # up to now, without one that was taken in between
    since_log: Int[Array, ""]  # since the last line of metrics
    in_all: Int[Array, ""]


class TrainState(NamedTuple):
    """``averaged`` is the exponential moving average of the parameters, or None when the config has it off."""

    step: Int[Array, ""]
    params: Params
    opt_state: optax.OptState
    averaged: Params | None
    sums: Sums
    skipped: Skipped

    @property
    def evaluated(self) -> Params:
        """The parameters that are validated and translated with: averaged ones where there are any."""
        return self.params if self.averaged is None else self.averaged


class Reading(NamedTuple):
    """What a step tells beside its state."""

    loss: Float[Array, ""]  # smoothed, per target token
    gradient_norm: Float[Array, ""]  # before clipping
    skipped_in_row: Int[Array, ""]


def zero_sums() -> Sums:
    """Sums of nothing, each in a buffer of its own: the training step donates them one by one."""
    return Sums(*(jnp.zeros(()) for _ in Sums._fields))


def after_log(state: TrainState) -> TrainState:
    """The state once its sums have become a line of metrics.

    Zeros like those that were there: on a device that a restored state names, others would compile the step again.
    """
    since_log = jnp.zeros_like(state.skipped.since_log)
    return state._replace(
        sums=jax.tree.map(jnp.zeros_like, state.sums), skipped=state.skipped._replace(since_log=since_log)
    )


def init_state(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """State before the first step: parameters from the seed, zero moments, the average equal to the parameters."""
    return _init_state(model, training, vocab_size, np.uint32(training.seed))


def seeded_state(model: ModelConfig, training: TrainingConfig, vocab_size: int, seed: UInt32[Array, ""]) -> TrainState:
    """``init_state``, to be compiled: its seed is no constant, so that what is kept for one serves all."""
    return state_of(training, init_params(model, vocab_size, jax.random.key(seed)))


def state_of(training: TrainingConfig, params: Params) -> TrainState:
    """State before the first step, from its parameters."""
    averaged = jax.tree.map(jnp.copy, params) if training.ema_decay else None
    skipped = Skipped(*(jnp.zeros((), jnp.int32) for _ in Skipped._fields))
    step = jnp.zeros((), jnp.int32)
    return TrainState(step, params, optimizer(training).init(params), averaged, zero_sums(), skipped)


def state_like(model: ModelConfig, training: TrainingConfig, vocab_size: int) -> TrainState:
    """Shapes and types of a state's arrays."""
    like: TrainState = jax.eval_shape(partial(state_of, training), nnx.to_pure_dict(structure(model, vocab_size)[1]))
    return like


_init_state = jax.jit(seeded_state, static_argnames=("model", "training", "vocab_size"))


def summed_loss(model: Transformer, batch: Batch, smoothing: float, dropout_key: DropoutKey) -> Loss:
    """Loss sums of a batch under teacher forcing."""
    decoded = decoded_of(model, batch, dropout_key)
    return model.loss(decoded, batch.target_labels, batch.target_segments > 0, smoothing)


def decoded_of(model: Transformer, batch: Batch, dropout_key: DropoutKey) -> Float[Array, "B T D"]:
    """The decoder's output at every target position, under teacher forcing."""
    source = Tokens(batch.source_tokens, batch.source_segments, batch.source_positions)
    target = Tokens(batch.target_inputs, batch.target_segments, batch.target_positions)
    return model(source, target, dropout_key=dropout_key)


def make_train_step(
    graphdef: nnx.GraphDef[Transformer], config: TrainingConfig, layout: TrainState | None = None
) -> Callable[[TrainState, Batch], tuple[TrainState, Reading]]:
    """One compiled update: ``(state, batch) → (state, reading)``. The old state is donated.

    ``layout`` has the sharding of each array of the state (``training/devices/mesh.py``); None: one device has all.

    A step whose loss, gradient or update is not finite counts as a step and changes nothing but the counts of such
    steps.
    """
    transform, gradients_of = optimizer(config), make_gradients(graphdef, config)

    def train_step(state: TrainState, batch: Batch) -> tuple[TrainState, Reading]:
        gradients, sums = gradients_of(state.params, batch, state.step)
        norm = optax.tree.norm(gradients)
        updates, opt_state = transform.update(gradients, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        averaged = None if state.averaged is None else moving_average(state.averaged, params, state.step, config)
        added = add_sums(state.sums, sums, batch, norm)

        is_finite = jnp.isfinite(sums.smoothed) & jnp.isfinite(norm) & jnp.isfinite(optax.tree.norm(updates))
        new, old = (params, opt_state, averaged, added), (state.params, state.opt_state, state.averaged, state.sums)
        params, opt_state, averaged, added = jax.tree.map(lambda a, b: jnp.where(is_finite, a, b), new, old)
        skipped = count_skipped(state.skipped, is_finite)
        state = TrainState(state.step + 1, params, opt_state, averaged, added, skipped)
        return state, Reading(sums.smoothed / sums.tokens, norm, skipped.in_row)

    if layout is None:
        return jax.jit(train_step, donate_argnums=0)
    return jax.jit(on_mesh(mesh_of(layout), train_step), donate_argnums=0, out_shardings=(layout, layout.step))


def make_gradients(
    graphdef: nnx.GraphDef[Transformer], config: TrainingConfig
) -> Callable[[Params, Batch, Int[Array, ""]], tuple[Params, Loss]]:
    """``(parameters, batch, steps before it) → (gradient per target token, loss sums)``.

    The dropout of a step depends on the seed and the step alone. Gradients are summed over the slices of a batch and
    divided once by its real target tokens, so that accumulation changes nothing but memory.
    """
    root_key = jax.random.key(config.seed)

    def loss(params: Params, batch: Batch, key: DropoutKey) -> tuple[Float[Array, ""], Loss]:
        sums = summed_loss(nnx.merge(graphdef, params), batch, config.label_smoothing, key)
        return sums.smoothed, sums

    def summed_gradients(params: Params, batch: Batch, key: Array) -> tuple[Params, Loss]:
        gradients, sums = jax.grad(loss, has_aux=True)(params, batch, key)
        return gradients, sums

    def gradients_of(params: Params, batch: Batch, step: Int[Array, ""]) -> tuple[Params, Loss]:
        key = jax.random.fold_in(root_key, step)
        gradients, sums = over_slices(summed_gradients, config.accumulation)(params, batch, key)
        return jax.tree.map(lambda leaf: leaf / sums.tokens, gradients), sums

    return gradients_of


def count_skipped(skipped: Skipped, is_finite: Bool[Array, ""]) -> Skipped:
    """The counts with one more step in them."""
    new = 1 - is_finite.astype(jnp.int32)
    return Skipped(jnp.where(is_finite, 0, skipped.in_row + 1), skipped.since_log + new, skipped.in_all + new)


def over_slices(
    summed_gradients: Callable[[Params, Batch, Array], tuple[Params, Loss]], slices: int
) -> Callable[[Params, Batch, Array], tuple[Params, Loss]]:
    """The same sums, a slice of the batch's rows at a time: activations of one slice only are alive at once."""
    if slices == 1:
        return summed_gradients

    def accumulated(params: Params, batch: Batch, key: Array) -> tuple[Params, Loss]:
        # Every slice takes rows from everywhere, so that each device has its share of each.
        sliced = jax.tree.map(lambda rows: rows.reshape(-1, slices, *rows.shape[1:]).swapaxes(0, 1), batch)

        def add(total: PyTree, slice_and_key: tuple[Batch, Array]) -> tuple[PyTree, None]:
            return jax.tree.map(jnp.add, total, summed_gradients(params, *slice_and_key)), None

        zero = jax.tree.map(jnp.zeros_like, params), Loss(*(jnp.zeros(()) for _ in Loss._fields))
        return jax.lax.scan(add, zero, (sliced, jax.random.split(key, slices)))[0]

    return accumulated


def moving_average(averaged: Params, params: Params, step: Int[Array, ""], config: TrainingConfig) -> Params:
    """Exponential moving average whose decay starts low, min(decay, (1 + step) / (10 + step)), to forget the start."""
    decay = jnp.minimum(config.ema_decay, (1 + step) / (10 + step))
    return jax.tree.map(lambda old, new: decay * old + (1 - decay) * new, averaged, params)


def add_sums(total: Sums, loss: Loss, batch: Batch, gradient_norm: Float[Array, ""]) -> Sums:
    """The sums with one more step in them."""
    source_tokens = jnp.sum(batch.source_segments > 0, dtype=jnp.float32)
    new = Sums(loss.smoothed, loss.cross_entropy, loss.tokens, source_tokens, gradient_norm, jnp.ones(()))
    return jax.tree.map(jnp.add, total, new)


def make_loss_step(
    graphdef: nnx.GraphDef[Transformer], smoothing: float, mesh: Mesh | None = None
) -> Callable[[Params, Batch], Loss]:
    """Compiled loss of a batch without dropout, for validation."""

    def loss_step(params: Params, batch: Batch) -> Loss:
        return summed_loss(nnx.merge(graphdef, params), batch, smoothing, None)

    if mesh is None:
        return jax.jit(loss_step)
    return jax.jit(on_mesh(mesh, loss_step), out_shardings=NamedSharding(mesh, PartitionSpec()))
